import type { z } from 'zod';
import { parseDisclosureFrame } from '../formats/sd-jwt/disclosure-frame.ts';
import { isJsonObject } from '../shared/json.ts';
import type { CredentialConfiguration } from './configuration.ts';
import type { CredentialConfig } from './credential-config.ts';
import { staticElements } from './mdoc-claims.ts';
import { describedPaths } from './type-claims.ts';

type LocalizedName = { readonly name: string; readonly locale?: string | undefined };
type Path = readonly (string | number | null)[];

/** The names of a claim by language, without its value. */
export type ClaimPreview = {
  /** Shown when the claim has no name: the last component of its path. */
  readonly fallback: string;
  readonly names: readonly LocalizedName[];
};

/** The credential data that users see before they receive it. */
export type CredentialPreview = {
  readonly id: string;
  readonly displays: NonNullable<z.infer<typeof CredentialConfig>['display']>;
  readonly claims: readonly ClaimPreview[];
};

type DescribedConfiguration = Pick<CredentialConfiguration, 'id' | 'config'> &
  Partial<Pick<CredentialConfiguration, 'vct' | 'claims' | 'schema' | 'disclosureFrame'>>;

/** Limit of the claims on a page. */
const MAX_CLAIMS = 100;

/** @param configuration with its claim descriptions; claims of a particular holder are not known here. */
export function credentialPreview(configuration: DescribedConfiguration): CredentialPreview {
  const { id, config, claims, schema, disclosureFrame } = configuration;
  const staticClaims = claims ?? (config.format === 'mso_mdoc' ? staticElements(config) : undefined);
  const frame = disclosureFrame ? parseDisclosureFrame(disclosureFrame) : undefined;
  const described = namesOf(configuration).map(({ path }) => path);
  const claimPaths = described.length > 0 ? described : describedPaths({ config, claims: staticClaims, schema }, frame);
  const paths = claimPaths.filter((path) => !isProtocol(path));
  return { id, displays: config.display ?? [], claims: claimPreviews(leafPaths(paths), configuration) };
}

/** @param configuration that names the claims; absent for an unknown type. */
export function claimPreviews(paths: readonly Path[], configuration?: DescribedConfiguration): readonly ClaimPreview[] {
  const names = new Map((configuration === undefined ? [] : namesOf(configuration)).map((entry) => [keyOf(entry.path), entry.names]));
  const previews = new Map<string, ClaimPreview>();
  for (const path of paths) {
    const words = path.filter((part) => typeof part === 'string');
    const claim = { fallback: readableName(words.at(-1) ?? ''), names: names.get(keyOf(path)) ?? [] };
    const key = JSON.stringify([words, claim.names]);
    if (claim.fallback !== '' && !previews.has(key) && previews.size < MAX_CLAIMS) previews.set(key, claim);
  }
  return [...previews.values()];
}

/** Names in the credential configuration take precedence over names in the type metadata (SD-JWT VC section 5.6.2). */
function namesOf({ config, vct }: DescribedConfiguration): { readonly path: Path; readonly names: readonly LocalizedName[] }[] {
  const configuredNames = (config.claims ?? []).map(({ path, display = [] }) => ({ path, names: display }));
  const rawTypeClaims = isJsonObject(vct) && 'claims' in vct ? vct.claims : undefined;
  const typeClaims = (Array.isArray(rawTypeClaims) ? rawTypeClaims : []) as readonly {
    readonly path: Path;
    readonly display?: readonly { label: string; locale?: string; lang?: string }[];
  }[];
  const typeNames = typeClaims.map(({ path, display = [] }) => ({
    path,
    names: display.map(({ label, locale, lang }) => ({ name: label, locale: locale ?? lang })),
  }));
  const namedPaths = new Set(configuredNames.filter(({ names }) => names.length > 0).map(({ path }) => keyOf(path)));
  return [...configuredNames, ...typeNames.filter(({ path }) => !namedPaths.has(keyOf(path)))];
}

/** All entries of an array share one key. */
function keyOf(path: Path): string {
  return JSON.stringify(path.map((part) => (typeof part === 'number' ? null : part)));
}

/** A container is not listed, because its claims are. */
function leafPaths(paths: readonly Path[]): readonly Path[] {
  const containers = new Set<string>();
  for (const path of paths) {
    for (let length = 1; length < path.length; length++) containers.add(keyOf(path.slice(0, length)));
  }
  return paths.filter((path) => !containers.has(keyOf(path)));
}

const isProtocol = ([name, ...deeperComponents]: Path) =>
  deeperComponents.length === 0 && ['iat', 'nbf', 'exp', 'iss', 'sub', 'cnf', 'status', 'vct'].includes(String(name));

function readableName(name: string): string {
  return name.replaceAll(/[_-]+/g, ' ').trim();
}
