import type { z } from 'zod';
import { parseDisclosureFrame } from '../formats/sd-jwt/disclosure-frame.ts';
import { isJsonObject } from '../shared/json.ts';
import type { CredentialConfiguration } from './configuration.ts';
import type { CredentialConfig } from './credential-config.ts';
import { staticElements } from './mdoc-claims.ts';
import { knownPaths } from './type-claims.ts';

type Named = { readonly name: string; readonly locale?: string | undefined };
type Path = readonly (string | number | null)[];

/** A claim as users are told of it: what it is called in each language. Never what it says. */
export type ShownClaim = {
  /** For where it has no name: the last word of its path. */
  readonly fallback: string;
  readonly names: readonly Named[];
};

/** A credential as users are told of it before they have it. */
export type ShownCredential = {
  readonly id: string;
  readonly displays: NonNullable<z.infer<typeof CredentialConfig>['display']>;
  readonly claims: readonly ShownClaim[];
};

type Described = Pick<CredentialConfiguration, 'id' | 'config'> &
  Partial<Pick<CredentialConfiguration, 'vct' | 'claims' | 'schema' | 'disclosureFrame'>>;

/** No page lists more. */
const MAX_CLAIMS = 100;

/** @param configuration with all that it says of its claims; whose claims they are is not known here. */
export function shownCredential(configuration: Described): ShownCredential {
  const { id, config, claims, schema, disclosureFrame } = configuration;
  const stated = claims ?? (config.format === 'mso_mdoc' ? staticElements(config) : undefined);
  const frame = disclosureFrame ? parseDisclosureFrame(disclosureFrame) : undefined;
  const described = namesOf(configuration).map(({ path }) => path);
  const known = described.length > 0 ? described : knownPaths({ config, claims: stated, schema }, frame);
  const paths = known.filter((path) => !isProtocol(path));
  return { id, displays: config.display ?? [], claims: shownClaims(leavesOf(paths), configuration) };
}

/** @param named whose names count; none where nothing is known of the type. */
export function shownClaims(paths: readonly Path[], named?: Described): readonly ShownClaim[] {
  const names = new Map((named === undefined ? [] : namesOf(named)).map((one) => [keyOf(one.path), one.names]));
  const shown = new Map<string, ShownClaim>();
  for (const path of paths) {
    const words = path.filter((part) => typeof part === 'string');
    const claim = { fallback: wordOf(words.at(-1) ?? ''), names: names.get(keyOf(path)) ?? [] };
    const key = JSON.stringify([words, claim.names]);
    if (claim.fallback !== '' && !shown.has(key) && shown.size < MAX_CLAIMS) shown.set(key, claim);
  }
  return [...shown.values()];
}

/** What wallets are told comes before what the metadata of the type say (SD-JWT VC section 5.6.2). */
function namesOf({ config, vct }: Described): { readonly path: Path; readonly names: readonly Named[] }[] {
  const own = (config.claims ?? []).map(({ path, display = [] }) => ({ path, names: display }));
  const typed = isJsonObject(vct) && 'claims' in vct ? vct.claims : undefined;
  const ofType = (Array.isArray(typed) ? typed : []) as readonly {
    readonly path: Path;
    readonly display?: readonly { label: string; locale?: string; lang?: string }[];
  }[];
  const others = ofType.map(({ path, display = [] }) => ({
    path,
    names: display.map(({ label, locale, lang }) => ({ name: label, locale: locale ?? lang })),
  }));
  const said = new Set(own.filter(({ names }) => names.length > 0).map(({ path }) => keyOf(path)));
  return [...own, ...others.filter(({ path }) => !said.has(keyOf(path)))];
}

/** Names of a claim and of the entries of an array alike. */
function keyOf(path: Path): string {
  return JSON.stringify(path.map((part) => (typeof part === 'number' ? null : part)));
}

/** What contains others is told by them. */
function leavesOf(paths: readonly Path[]): readonly Path[] {
  const containers = new Set<string>();
  for (const path of paths) {
    for (let length = 1; length < path.length; length++) containers.add(keyOf(path.slice(0, length)));
  }
  return paths.filter((path) => !containers.has(keyOf(path)));
}

const isProtocol = ([first, ...below]: Path) =>
  below.length === 0 && ['iat', 'nbf', 'exp', 'iss', 'sub', 'cnf', 'status', 'vct'].includes(String(first));

function wordOf(name: string): string {
  return name.replaceAll(/[_-]+/g, ' ').trim();
}
