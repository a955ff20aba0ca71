import { at, isRecord, listAt, textAt } from '../../parts/json-paths.ts';
import { CATALOGUE, type KnownClaim } from '../credentials/catalogue.ts';
import { labelOf, languagesOf, pathOf, titleOf } from '../credentials/claims.ts';

/** A kind of credential that can be asked for. */
export type Kind = {
  readonly key: string;
  readonly title: string;
  readonly format: string;
  readonly type: string;
  readonly claims: readonly { readonly path: readonly string[]; readonly name: string }[];
  readonly isOwn: boolean;
  /** Another tenant of this service that issues it. */
  readonly issuer?: string;
  /** Which of its key chains signs, where that is not its default. */
  readonly keyChainId?: string;
};

export type OfOther = { readonly tenantId: string; readonly configurations: readonly unknown[] };

export type RequestedCredential = {
  readonly id: string;
  readonly format: string;
  readonly types: readonly string[];
  /** Undefined where the query names none, which asks for all that cannot be withheld. */
  readonly paths: readonly (readonly string[])[] | undefined;
};

export function askedOf(draft: unknown): readonly RequestedCredential[] {
  return listAt(draft, 'dcql_query', 'credentials').map((query) => ({
    id: textAt(query, 'id'),
    format: textAt(query, 'format'),
    types: [...listAt(query, 'meta', 'vct_values').map(String), textAt(query, 'meta', 'doctype_value')].filter((type) => type !== ''),
    paths: Array.isArray(at(query, 'claims')) ? listAt(query, 'claims').map(pathOf) : undefined,
  }));
}

/**
 * @param configurations credential configurations of this tenant, as the interface lists them.
 * @param others those of other tenants.
 */
export function kindsOf(configurations: readonly unknown[], others: readonly OfOther[] = []): readonly Kind[] {
  const own = issued(configurations).map((kind) => ({ ...kind, key: `own ${kind.key}`, isOwn: true }));
  const theirs = others.flatMap(({ tenantId, configurations: all }) =>
    issued(all).map((kind) => ({ ...kind, key: `of ${tenantId}/${kind.key}`, issuer: tenantId })),
  );
  const known = CATALOGUE.map(({ id, title, format, type, claims }) => ({ key: `known ${id}`, title, format, type, claims, isOwn: false }));
  return [...own, ...theirs, ...known];
}

function issued(configurations: readonly unknown[]): readonly Kind[] {
  return configurations.flatMap((configuration): readonly Kind[] => {
    const format = textAt(configuration, 'config', 'format');
    const vct = at(configuration, 'vct');
    const type = format === 'mso_mdoc' ? textAt(configuration, 'config', 'docType') : textAt(isRecord(vct) ? at(vct, 'vct') : vct);
    const [locale = 'en'] = languagesOf(configuration);
    const claims = listAt(configuration, 'config', 'claims').map((claim) => ({
      path: pathOf(claim),
      name: labelOf(claim, locale) || titleOf(pathOf(claim).at(-1) ?? ''),
    }));
    const id = textAt(configuration, 'id');
    const title = textAt(listAt(configuration, 'config', 'display')[0], 'name') || id;
    const keyChainId = textAt(configuration, 'keyChainId');
    const signedBy = keyChainId === '' ? {} : { keyChainId };
    return type === '' ? [] : [{ key: id, title, format, type, claims, isOwn: false, ...signedBy }];
  });
}

export function kindOf(asked: RequestedCredential, kinds: readonly Kind[]): Kind | undefined {
  return kinds.find(({ format, type }) => format === asked.format && asked.types.includes(type));
}

/** The query that asks for a kind, without claims yet. */
export function queryFor(kind: Kind, id: string): unknown {
  return {
    id,
    format: kind.format,
    meta: kind.format === 'mso_mdoc' ? { doctype_value: kind.type } : { vct_values: [kind.type] },
    claims: [],
  };
}

export function knownClaim(path: readonly string[], format: string): KnownClaim | undefined {
  return CATALOGUE.filter((kind) => kind.format === format)
    .flatMap(({ claims }) => claims)
    .find((claim) => claim.path.join('\n') === path.join('\n'));
}

export function sentenceOf(draft: unknown, kinds: readonly Kind[]): string {
  const asked = askedOf(draft);
  if (asked.length === 0) return 'Asks for nothing yet.';
  return asked.map((credential) => `Asks for ${partOf(credential, kinds)}.`).join(' ');
}

function partOf(asked: RequestedCredential, kinds: readonly Kind[]): string {
  const kind = kindOf(asked, kinds);
  const what = kind?.title ?? asked.types.join(' or ');
  const from = what === '' ? 'any credential' : `a credential “${what}”`;
  if (asked.paths === undefined) return `${from}, without a claim that can be withheld`;
  const names = asked.paths.map((path) => {
    const label = kind?.claims.find((claim) => claim.path.join('\n') === path.join('\n'))?.name;
    return (label ?? titleOf(path.at(-1) ?? '')).toLowerCase();
  });
  return `${inWords(names)} of ${from}`;
}

export function inWords(names: readonly string[]): string {
  if (names.length < 2) return names[0] ?? 'no claim';
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
