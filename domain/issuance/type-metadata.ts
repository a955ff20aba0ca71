import { createHash } from 'node:crypto';
import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import type { JsonObject } from '../shared/json.ts';
import { withReadableImages } from '../tenants/display.ts';
import { compact } from './compact.ts';
import type { CredentialConfiguration } from './configuration.ts';
import { disclosability } from './disclosability.ts';
import { vctOf } from './metadata.ts';
import { knownPaths } from './type-claims.ts';

type ClaimDescription = NonNullable<CredentialConfiguration['config']['claims']>[number];
type TypeObject = Exclude<CredentialConfiguration['vct'], string | null | undefined>;
type CredentialDisplay = NonNullable<CredentialConfiguration['config']['display']>[number];

/**
 * Type metadata that the service hosts (SD-JWT VC section 5): what the configuration's `vct` object says, and for
 * the rest what its display, claims and frame say.
 * @param frame what is selectively disclosable; absent when nothing is.
 */
export function typeMetadata(configuration: CredentialConfiguration, issuer: string, frame: Frame | undefined): JsonObject {
  const { vct, config, description } = configuration;
  const own = typeof vct === 'object' && vct !== null ? vct : {};
  return compact({
    name: config.display?.[0]?.name,
    description,
    display: config.display?.flatMap(typeDisplay),
    claims: claimsOf(configuration, frame),
    ...withLocales(own),
    vct: vctOf(configuration, issuer),
  });
}

/** Displays of a type as older drafts wrote them, `lang` instead of `locale`: readers of today refuse those. */
function withLocales(own: TypeObject): TypeObject {
  const { display, claims } = own;
  return {
    ...own,
    ...(display !== undefined && { display: display.map(withLocale).map(withReadableLook) }),
    ...(claims !== undefined && {
      claims: claims.map((claim) => {
        const { display: shown } = claim;
        return Array.isArray(shown) ? { ...claim, display: shown.map(withLocale) } : claim;
      }),
    }),
  };
}

type TypeDisplay = NonNullable<TypeObject['display']>[number];

function withReadableLook(display: TypeDisplay): TypeDisplay {
  const { rendering } = display ?? {};
  if (rendering?.simple === undefined) return display;
  return { ...display, rendering: { ...rendering, simple: withReadableImages(rendering.simple) } };
}

function withLocale<T>(display: T): T {
  if (typeof display !== 'object' || display === null || !('lang' in display)) return display;
  const { lang, ...rest } = display;
  return { locale: lang, ...rest } as T;
}

/** SD-JWT VC section 6: over the exact bytes that are served (W3C Subresource Integrity). */
export function integrityOf(document: string): string {
  return `sha256-${createHash('sha256').update(document).digest('base64')}`;
}

/** SD-JWT VC section 5.5.1: a display belongs to a language. */
function typeDisplay(display: CredentialDisplay): JsonObject[] {
  const { name, locale, description, ...rendering } = display;
  if (locale === undefined) return [];
  const { logo, background_image, background_color, text_color } = withReadableImages(rendering);
  const simple = compact({ logo, background_image, background_color, text_color });
  const hasLook = Object.keys(simple).length > 0;
  return [compact({ locale, name, description, rendering: hasLook ? { simple } : undefined })];
}

/** All that a credential may have; what is said of some of them stands beside. */
function claimsOf(configuration: CredentialConfiguration, frame: Frame | undefined): JsonObject[] {
  const described = new Map((configuration.config.claims ?? []).map((claim) => [JSON.stringify(claim.path), claim]));
  return knownPaths(configuration, frame).map((path) => claimMetadata(described.get(JSON.stringify(path)) ?? { path }, frame));
}

/** SD-JWT VC section 5.6 */
function claimMetadata({ path, display, mandatory }: ClaimDescription, frame: Frame | undefined): JsonObject {
  return compact({
    path,
    display: display?.flatMap(({ name, locale }) => (locale === undefined ? [] : [{ locale, label: name }])),
    mandatory: mandatory === true ? true : undefined,
    sd: disclosability(path, frame),
  });
}

/** Whoever writes a configuration without knowing the member leaves its promise as it is: only `false` lifts it. */
export function keepTypeIntegrity<T extends { readonly vctIntegrity?: boolean | null | undefined }>(
  body: T,
  stored: { readonly vctIntegrity?: boolean | null | undefined } | undefined,
): T {
  const isSilent = body.vctIntegrity === undefined || body.vctIntegrity === null;
  return isSilent && stored?.vctIntegrity === true ? { ...body, vctIntegrity: true } : body;
}
