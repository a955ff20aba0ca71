import { z } from 'zod';

/**
 * Two published vocabularies name one thing. The service speaks of key chains; a body may say certificate instead,
 * and answers carry both names.
 *
 * In a routes file: `body: acceptKeyReferences(CredentialConfigurationBody)`, and in a view
 * `withKeyReferences({ id, keyChainId, … })`.
 */
const NAMES = [
  { certificate: 'certId', keyChain: 'keyChainId' },
  { certificate: 'accessCertId', keyChain: 'accessKeyChainId' },
  { certificate: 'issuerCertId', keyChain: 'issuerKeyChainId' },
  { certificate: 'revocationCertId', keyChain: 'revocationKeyChainId' },
] as const;

type Names = (typeof NAMES)[number];

/** Lists of a body whose entries name key chains, too. */
const LISTS = ['trustAnchors', 'entities'];

/** A schema that also takes the older names, at the top of a body and in the entries of its lists. */
export function acceptKeyReferences<S extends z.ZodType>(schema: S): z.ZodPreprocess<S> {
  return z.preprocess((value, context) => {
    const body = rename(value, [], context);
    if (!isObject(body)) return body;
    const lists = LISTS.flatMap((name) => {
      const list = body[name];
      if (!Array.isArray(list)) return [];
      return [[name, list.map((entry: unknown, index) => rename(entry, [name, index], context))]];
    });
    return { ...body, ...Object.fromEntries(lists) };
  }, schema);
}

/** What the service calls a member that may have an older name. */
export function currentName(name: string): string {
  return NAMES.find(({ certificate }) => certificate === name)?.keyChain ?? name;
}

function rename(value: unknown, path: (string | number)[], context: z.RefinementCtx): unknown {
  if (!isObject(value)) return value;
  const renamed: Record<string, unknown> = { ...value };
  for (const { certificate, keyChain } of NAMES) {
    if (!Object.hasOwn(renamed, certificate)) continue;
    const older = renamed[certificate];
    delete renamed[certificate];
    if (!Object.hasOwn(renamed, keyChain)) renamed[keyChain] = older;
    else if (renamed[keyChain] !== older) {
      const message = `${certificate} and ${keyChain} name the same thing; give one, or both alike`;
      context.addIssue({ code: 'custom', path: [...path, certificate], message });
    }
  }
  return renamed;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

type WithBothNames<T> = T & {
  readonly [N in Names as N['keyChain'] extends keyof T ? N['certificate'] : never]: T[N['keyChain'] &
    keyof T];
};

/** Adds the older name beside each newer one that the view has. */
export function withKeyReferences<T extends object>(view: T): WithBothNames<T> {
  const both = { ...view } as Record<string, unknown>;
  for (const { certificate, keyChain } of NAMES) {
    if (Object.hasOwn(both, keyChain)) both[certificate] = both[keyChain];
  }
  return both as WithBothNames<T>;
}
