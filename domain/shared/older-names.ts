import type { FieldError } from './failure.ts';
import { isJsonObject, valueAt } from './json.ts';

/**
 * Two published vocabularies for the same thing. The service uses key chains; a document may use certificate ids instead, and responses
 * contain both names.
 */
const NAMES = [
  { certificate: 'certId', keyChain: 'keyChainId' },
  { certificate: 'accessCertId', keyChain: 'accessKeyChainId' },
  { certificate: 'issuerCertId', keyChain: 'issuerKeyChainId' },
  { certificate: 'revocationCertId', keyChain: 'revocationKeyChainId' },
] as const;

type Names = (typeof NAMES)[number];

/** Properties with arrays whose entries refer to key chains as well. */
const LISTS = ['trustAnchors', 'entities'];

/**
 * Renames older properties, at the top level and in entries of `LISTS`.
 * @param knownNames properties of the schema: nothing is renamed to another property.
 */
export function withCurrentNames(
  document: unknown,
  knownNames: readonly string[],
): { readonly value: unknown; readonly errors: readonly FieldError[] } {
  const errors: FieldError[] = [];
  const names = NAMES.filter(({ keyChain }) => knownNames.includes(keyChain));
  const value = rename(document, names, '', errors);
  if (!isJsonObject(value)) return { value, errors };
  const lists = LISTS.filter((name) => knownNames.includes(name)).flatMap((name) => {
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
    const certificateValue = renamed[certificate];
    delete renamed[certificate];
    if (!Object.hasOwn(renamed, keyChain)) renamed[keyChain] = certificateValue;
    else if (renamed[keyChain] !== certificateValue) {
      const message = `${certificate} and ${keyChain} are names of the same property; send one, or both with the same value`;
      errors.push({ path: path + certificate, message });
    }
  }
  return renamed;
}

/** @returns the older name of a property, if any. */
export function olderNameOf(name: string): string | undefined {
  return NAMES.find(({ keyChain }) => keyChain === name)?.certificate;
}

/** @returns the path of an error in the written document: with the older name if it was used. */
export function pathAsWritten(path: string, writtenDocument: unknown): string {
  const parents = path.split('.');
  const name = parents.pop() ?? '';
  const olderName = olderNameOf(name);
  const parent = parents.length === 0 ? writtenDocument : valueAt(writtenDocument, parents);
  if (olderName === undefined || !isJsonObject(parent)) return path;
  return Object.hasOwn(parent, olderName) && !Object.hasOwn(parent, name) ? [...parents, olderName].join('.') : path;
}

/** True for an older name of a known property. */
export function isOlderName(name: string, knownNames: readonly string[]): boolean {
  return NAMES.some(({ certificate, keyChain }) => certificate === name && knownNames.includes(keyChain));
}

type WithBothNames<T> = T & {
  readonly [N in Names as N['keyChain'] extends keyof T ? N['certificate'] : never]: T[N['keyChain'] & keyof T];
};

/** Adds the older name beside each newer one in a response. */
export function withKeyReferences<T extends object>(view: T): WithBothNames<T> {
  const viewWithBothNames = { ...view } as Record<string, unknown>;
  for (const { certificate, keyChain } of NAMES) {
    if (Object.hasOwn(viewWithBothNames, keyChain)) viewWithBothNames[certificate] = viewWithBothNames[keyChain];
  }
  return viewWithBothNames as WithBothNames<T>;
}
