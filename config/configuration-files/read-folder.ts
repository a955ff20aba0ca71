import { readdirSync, readFileSync, realpathSync, type Stats, statSync } from 'node:fs';
import { join, sep } from 'node:path';
import {
  type DocumentLocation,
  type FolderContents,
  type FolderDocument,
  type FolderFault,
  type InvalidFile,
  isFolder,
  locationOf,
} from '../../domain/configuration-files/folder.ts';
import { isJsonObject } from '../../domain/shared/json.ts';
import { valueOrUndefined } from '../../domain/shared/value-or-undefined.ts';
import { type Parsed, parseDocumentText } from './parse-document.ts';
import { type Environment, fillPlaceholders, withoutValues } from './placeholders.ts';

export const MAX_FILE_BYTES = 1024 * 1024;
export const MAX_FOLDER_BYTES = 64 * 1024 * 1024;
export const MAX_FILES = 5_000;

/** Files beside the tenants' folders that are ignored. */
const IGNORED = new Set(['README.md', 'secrets.env', 'secrets.env.example']);

/**
 * Reads `<folder>/<tenant>/…` and fills the placeholders. Never throws for the content: every fault of every file is
 * listed. Names that begin with a dot are ignored, as in a mounted Kubernetes volume.
 * @param forbiddenVariables further variables that documents may not use: the secrets of the key providers.
 */
export function readFolder(folder: string, environment: Environment, forbiddenVariables: readonly string[] = []): FolderContents {
  const reader = new FolderReader(folder, environment, forbiddenVariables);
  reader.read();
  const { documents, invalidFiles, tenants, faults, used, originalTexts } = reader;
  return {
    documents,
    invalidFiles,
    tenants,
    faults,
    redact: (message) => withoutValues(message, used),
    withPlaceholders: (text) => originalTexts.get(text) ?? text,
  };
}

class FolderReader {
  readonly documents: FolderDocument[] = [];
  readonly invalidFiles: InvalidFile[] = [];
  readonly tenants: string[] = [];
  readonly faults: FolderFault[] = [];
  readonly used = new Map<string, string>();
  readonly originalTexts = new Map<string, string>();
  readonly #folder: string;
  readonly #environment: Environment;
  readonly #forbiddenVariables: readonly string[];
  #root = '';
  #files = 0;
  #bytes = 0;

  constructor(folder: string, environment: Environment, forbiddenVariables: readonly string[]) {
    this.#folder = folder;
    this.#environment = environment;
    this.#forbiddenVariables = forbiddenVariables;
  }

  read(): void {
    if (!this.#open()) return;
    const names = this.#names('');
    if (this.#isTenant(names)) {
      this.#fault('', 'this is the folder of one tenant; use its parent folder');
      return;
    }
    for (const name of names) {
      const entry = this.#stat(name);
      if (entry === undefined) continue;
      if (!entry.isDirectory()) {
        if (!IGNORED.has(name)) this.#fault(name, 'is not expected here: each tenant has its own folder');
        continue;
      }
      this.tenants.push(name);
      this.#readTenant(name, '');
    }
  }

  #open(): boolean {
    try {
      this.#root = realpathSync(this.#folder);
      if (statSync(this.#root).isDirectory()) return true;
    } catch {
      // Reported below
    }
    this.#fault('', 'there is no such folder, or it cannot be read');
    return false;
  }

  /** True if the folder itself contains tenant.json (or .yaml) and no tenant folders. */
  #isTenant(names: readonly string[]): boolean {
    const isDirectory = (name: string) => valueOrUndefined(() => statSync(join(this.#root, name)).isDirectory()) ?? false;
    return names.some((name) => locationOf(name)?.kind === 'tenant') && names.every((name) => isFolder(name) || !isDirectory(name));
  }

  /** @param below path within the folder of the tenant. */
  #readTenant(tenant: string, below: string): void {
    for (const name of this.#names(join(tenant, below))) {
      const path = below === '' ? name : `${below}/${name}`;
      const file = `${tenant}/${path}`;
      const entry = this.#stat(file);
      if (entry === undefined) continue;
      const documentPlace = locationOf(path);
      if (entry.isDirectory() && isFolder(path)) this.#readTenant(tenant, path);
      else if (entry.isFile() && documentPlace !== undefined) this.#readFile(tenant, file, documentPlace, entry.size);
      else if (below !== '' || !IGNORED.has(name)) this.#fault(file, 'is not expected here; see docs/reference/configuration-files.md');
    }
  }

  #readFile(tenant: string, file: string, { format, kind, name }: DocumentLocation, size: number): void {
    const parsed = this.#parse(file, format, size);
    if ('fault' in parsed) {
      this.#fault(file, parsed.fault);
      this.invalidFiles.push({ file, tenant, kind, name });
      return;
    }
    const { value, faults, used, originalTexts } = fillPlaceholders(parsed.value, this.#environment, this.#forbiddenVariables);
    for (const [variable, text] of used) this.used.set(variable, text);
    for (const [text, original] of originalTexts) this.originalTexts.set(text, original);
    for (const { path, message } of faults) this.faults.push({ file, path, message });
    if (!isJsonObject(value)) throw new Error('Placeholders changed the document to something other than an object.');
    const unfilled = faults.map(({ path }) => path);
    this.documents.push({ file, tenant, kind, name, value, unfilled });
  }

  #parse(file: string, format: 'json' | 'yaml', size: number): Parsed {
    this.#files++;
    this.#bytes += size;
    if (size > MAX_FILE_BYTES) return { fault: `has more than ${MAX_FILE_BYTES / 1024} KiB` };
    if (this.#files > MAX_FILES) return { fault: `exceeds the limit of ${MAX_FILES} files` };
    if (this.#bytes > MAX_FOLDER_BYTES) return { fault: `exceeds the limit of ${MAX_FOLDER_BYTES / 1024 / 1024} MiB for the folder` };
    try {
      return parseDocumentText(readFileSync(join(this.#root, file)), format);
    } catch {
      return { fault: 'cannot be read' };
    }
  }

  #names(folder: string): string[] {
    try {
      const names = readdirSync(join(this.#root, folder));
      return names.filter((name) => !name.startsWith('.')).sort((leftName, rightName) => (leftName < rightName ? -1 : 1));
    } catch {
      this.#fault(folder, 'cannot be read');
      return [];
    }
  }

  /** The target of a path, if it is inside of the folder: a link must not import other files. */
  #stat(path: string): Stats | undefined {
    try {
      const target = realpathSync(join(this.#root, path));
      if (target.startsWith(this.#root + sep)) return statSync(target);
      this.#fault(path, 'is a symbolic link that leaves the folder');
    } catch {
      this.#fault(path, 'is a broken link or cannot be read');
    }
    return undefined;
  }

  #fault(file: string, message: string): void {
    this.faults.push({ file, path: '', message });
  }
}
