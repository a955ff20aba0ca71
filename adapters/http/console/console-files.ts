import { readFile } from 'node:fs/promises';
import { madeOnce } from '../../../application/tenant-cache/made-once.ts';

/** Where the build puts them: beside this file in `dist`, and for sources that run as they are in the `dist` of the checkout. */
const FOLDERS = ['./built/', '../../../dist/adapters/http/console/built/'] as const;
const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};
/** Names as the build gives them: nothing leads out of the folder. */
const NAME = /^[a-z0-9-]{1,64}(?:-[A-Z0-9]{8})?\.(css|js|svg)$/;
/** The files that the page begins with, by their role. */
export type ConsoleManifest = { readonly script: string; readonly style: string };

export type ConsoleFile = { readonly content: Buffer; readonly contentType: string };

/** The browser's part of the console, as `npm run build` leaves it. Files are read once, when somebody looks. */
export class ConsoleFiles {
  readonly #kept = new Map<string, Promise<ConsoleFile | undefined>>();

  /** @returns undefined when the console was not built. */
  async manifest(): Promise<ConsoleManifest | undefined> {
    const text = await readBuilt('manifest.json');
    return text === undefined ? undefined : (JSON.parse(text.toString()) as ConsoleManifest);
  }

  /** @returns undefined for a name that is none of its files. */
  async read(name: string): Promise<ConsoleFile | undefined> {
    const contentType = TYPES[NAME.exec(name)?.[1] ?? ''];
    if (contentType === undefined) return undefined;
    const known = await madeOnce(this.#kept, name, async () => {
      const content = await readBuilt(name);
      return content && { content, contentType };
    });
    // A stranger's guesses are not remembered.
    if (known === undefined) this.#kept.delete(name);
    return known;
  }
}

async function readBuilt(name: string): Promise<Buffer | undefined> {
  for (const folder of FOLDERS) {
    try {
      return await readFile(new URL(`${folder}${name}`, import.meta.url));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  return undefined;
}
