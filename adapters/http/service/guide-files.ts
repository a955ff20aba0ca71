import { hash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Location of the site of `npm run docs:build`: from the sources, and from `dist`. */
const FOLDERS = ['../../../docs/site/', '../../../../docs/site/'] as const;
/** The base path that the pages are built for. */
const BUILT_BASE = '/docs/guide/';
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.txt': 'text/plain; charset=utf-8',
};
const INLINE_SCRIPT = /<script(?: id="[\w-]+")?>([^<]+)<\/script>/g;

/** Assets whose name contains a hash of their content, such as `assets/app.BzN4qXtH.js`. */
const HASHED_NAME = /^assets\/.+\.[\w-]{8,}\.(lean\.)?\w+$/;

export type GuideFile = {
  readonly content: Buffer | string;
  readonly contentType: string;
  readonly scriptHashes: readonly string[];
  /** True if the name contains a hash of the content, so that the content never changes. */
  readonly isHashed: boolean;
};

/** The documentation of this release as a site. Only names that the folder has at the start are read. */
export class GuideFiles {
  readonly #folder: URL | undefined;
  readonly #names: ReadonlySet<string>;
  readonly #base: string;

  /** @param base path of the public address without a trailing slash, often empty. */
  constructor(base: string, folders: readonly URL[] = FOLDERS.map((folder) => new URL(folder, import.meta.url))) {
    this.#base = base;
    const [found] = folders.flatMap((folder) => {
      const names = namesIn(folder);
      return names.size === 0 ? [] : [{ folder, names }];
    });
    this.#folder = found?.folder;
    this.#names = found?.names ?? new Set();
  }

  /** False when the site was not built, as in a new clone. */
  get isBuilt(): boolean {
    return this.#folder !== undefined;
  }

  /** @returns undefined for an unknown name, and for a file that was removed after the start. */
  async read(name: string): Promise<GuideFile | undefined> {
    const contentType = TYPES[extname(name)];
    if (this.#folder === undefined || contentType === undefined || !this.#names.has(name)) return undefined;
    const content = await readIfPresent(new URL(name, this.#folder));
    if (content === undefined) return undefined;
    const isHashed = HASHED_NAME.test(name);
    if (!contentType.endsWith('utf-8')) return { content, contentType, scriptHashes: [], isHashed };
    const text = content.toString().replaceAll(BUILT_BASE, `${this.#base}${BUILT_BASE}`);
    const scripts = extname(name) === '.html' ? Array.from(text.matchAll(INLINE_SCRIPT), ([, script = '']) => script) : [];
    return { content: text, contentType, scriptHashes: scripts.map((script) => hash('sha256', script, 'base64')), isHashed };
  }
}

/** @returns undefined if there is no such file. @throws Error if it cannot be read. */
async function readIfPresent(file: URL): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Paths of the files in the folder and its subfolders; empty without the folder. */
function namesIn(folder: URL): ReadonlySet<string> {
  try {
    return new Set(readdirSync(fileURLToPath(folder), { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/')));
  } catch {
    return new Set();
  }
}
