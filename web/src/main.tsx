/** Starts the page. */
import "uplot/dist/uPlot.min.css";
import "./style/page.css";
import { render } from "preact";
import { App, AppContext } from "./app";
import { Page } from "./views/app";

const app = new App();
document.documentElement.dataset.theme = app.theme.value;
const root = document.getElementById("page");
if (root === null) throw new Error(`index.html has no element with the id "page"`);
render(
  <AppContext value={app}>
    <Page />
  </AppContext>,
  root,
);
void app.feed.start();
