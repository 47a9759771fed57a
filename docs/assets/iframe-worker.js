// A page that was opened from a file may not start a worker, which the search needs: a hidden frame does its work.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inner = frame.contentWindow;
      this.loaded = new Promise(resolve => { this.inner.ready = resolve; });
      this.inner.tell = data => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      this.inner.document.write(
        '<!doctype html><script>function postMessage(data) { tell(data); }<\/script>' +
        `<script src="${url}" onload="ready()"><\/script>`);
      this.inner.document.close();
      this.terminate = () => frame.remove();
    }
    async postMessage(data) {
      await this.loaded;
      this.inner.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
