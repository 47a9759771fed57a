/** Style sheets are imported for the build to gather; they have no value. */
declare module "*.css";
