/** Runs the generator of the documentation site. @param command `build`, or `dev` for a server that follows changes. */
export function runGenerator(command: 'build' | 'dev'): void;
/** Builds the site and copies it to a folder. */
export function copySite(target: string): void;
