/** The build takes style sheets in by an import. */
declare module '*.css';
