import type { FieldError } from './failure.ts';
import { isJsonObject, valueAt } from './json.ts';

/**
 * Two published vocabularies name one thing. The service speaks of key chains; a document may say certificate instead,
 * and answers carry both names.
 */
const NAMES = [
  { certificate: 'certId', keyChain: 'keyChainId' },
  { certificate: 'accessCertId', keyChain: 'accessKeyChainId' },
  { certificate: 'issuerCertId', keyChain: 'issuerKeyChainId' },
  { certificate: 'revocationCertId', keyChain: 'revocationKeyChainId' },
] as const;

type Names = (typeof NAMES)[number];

/** Lists of a document whose entries name key chains, too. */
const LISTS = ['trustAnchors', 'entities'];

/**
 * A document by the names of the service, at its top and in the entries of its lists.
 * @param known the members that it may have: nothing is renamed to what is not among them.
 */
export function withCurrentNames(
  document: unknown,
  known: readonly string[],
): { readonly value: unknown; readonly errors: readonly FieldError[] } {
  const errors: FieldError[] = [];
  const names = NAMES.filter(({ keyChain }) => known.includes(keyChain));
  const value = rename(document, names, '', errors);
  if (!isJsonObject(value)) return { value, errors };
  const lists = LISTS.filter((name) => known.includes(name)).flatMap((name) => {
    const list: unknown = value[name];
    if (!Array.isArray(list)) return [];
    return [[name, list.map((entry, index) => rename(entry, NAMES, `${name}.${index}.`, errors))]];
  });
  return { value: { ...value, ...Object.fromEntries(lists) }, errors };
}

function rename(value: unknown, names: readonly Names[], path: string, errors: FieldError[]): unknown {
  if (!isJsonObject(value)) return value;
  const renamed: Record<string, unknown> = { ...value };
  for (const { certificate, keyChain } of names) {
    if (!Object.hasOwn(renamed, certificate)) continue;
    const older = renamed[certificate];
    delete renamed[certificate];
    if (!Object.hasOwn(renamed, keyChain)) renamed[keyChain] = older;
    else if (renamed[keyChain] !== older) {
      const message = `${certificate} and ${keyChain} name the same thing; give one, or both alike`;
      errors.push({ path: path + certificate, message });
    }
  }
  return renamed;
}

/** @returns the older name that a member may have as well. */
export function olderNameOf(name: string): string | undefined {
  return NAMES.find(({ keyChain }) => keyChain === name)?.certificate;
}

/** @returns the path of a fault as the document names it that was written: by the older name where that stands there. */
export function pathAsWritten(path: string, written: unknown): string {
  const parents = path.split('.');
  const name = parents.pop() ?? '';
  const older = olderNameOf(name);
  const parent = parents.length === 0 ? written : valueAt(written, parents);
  if (older === undefined || !isJsonObject(parent)) return path;
  return Object.hasOwn(parent, older) && !Object.hasOwn(parent, name) ? [...parents, older].join('.') : path;
}

/** Whether a member is known by an older name of its own. */
export function isOlderName(name: string, known: readonly string[]): boolean {
  return NAMES.some(({ certificate, keyChain }) => certificate === name && known.includes(keyChain));
}

type WithBothNames<T> = T & {
  readonly [N in Names as N['keyChain'] extends keyof T ? N['certificate'] : never]: T[N['keyChain'] & keyof T];
};

/** Adds the older name beside each newer one that the view has. */
export function withKeyReferences<T extends object>(view: T): WithBothNames<T> {
  const both = { ...view } as Record<string, unknown>;
  for (const { certificate, keyChain } of NAMES) {
    if (Object.hasOwn(both, keyChain)) both[certificate] = both[keyChain];
  }
  return both as WithBothNames<T>;
}
