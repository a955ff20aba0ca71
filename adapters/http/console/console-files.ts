import { readFile } from 'node:fs/promises';
import { getOrCreate } from '../../../application/tenant-cache/get-or-create.ts';

/** Location of the build: beside this file in `dist`, and in the `dist` of the checkout when the sources run directly. */
const FOLDERS = ['./built/', '../../../dist/adapters/http/console/built/'] as const;
const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
};
/** File names of the build; they contain no path separators. */
const NAME = /^[a-z0-9-]{1,64}(?:-[A-Z0-9]{8})?\.(css|js|svg)$/;
/** Entry files of the page, by their role. */
export type ConsoleManifest = { readonly script: string; readonly style: string };

export type ConsoleFile = { readonly content: Buffer; readonly contentType: string };

/** Browser files of the console, as `npm run build` writes them. Files are read once, on demand. */
export class ConsoleFiles {
  readonly #files = new Map<string, Promise<ConsoleFile | undefined>>();

  /** @returns undefined if the console was not built. */
  async manifest(): Promise<ConsoleManifest | undefined> {
    const text = await readBuilt('manifest.json');
    return text === undefined ? undefined : (JSON.parse(text.toString()) as ConsoleManifest);
  }

  /** @returns undefined for an unknown file name. */
  async read(name: string): Promise<ConsoleFile | undefined> {
    const contentType = TYPES[NAME.exec(name)?.[1] ?? ''];
    if (contentType === undefined) return undefined;
    const file = await getOrCreate(this.#files, name, async () => {
      const content = await readBuilt(name);
      return content && { content, contentType };
    });
    // Unknown names are not cached, because anonymous callers can send any number of them.
    if (file === undefined) this.#files.delete(name);
    return file;
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
