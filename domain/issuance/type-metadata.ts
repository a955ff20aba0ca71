import { createHash } from 'node:crypto';
import type { Frame } from '../formats/sd-jwt/disclosure-frame.ts';
import type { JsonObject } from '../shared/json.ts';
import { withReadableImages } from '../tenants/display.ts';
import { compact } from './compact.ts';
import type { CredentialConfiguration } from './configuration.ts';
import { disclosability } from './disclosability.ts';
import { vctOf } from './metadata.ts';
import { describedPaths } from './type-claims.ts';

type ClaimDescription = NonNullable<CredentialConfiguration['config']['claims']>[number];
type TypeObject = Exclude<CredentialConfiguration['vct'], string | null | undefined>;
type CredentialDisplay = NonNullable<CredentialConfiguration['config']['display']>[number];

/**
 * Type metadata that the service hosts (SD-JWT VC section 5): the properties of the configuration's `vct` object, completed from its
 * display, claims and frame.
 * @param frame of the selectively disclosable claims; absent when there are none.
 */
export function typeMetadata(configuration: CredentialConfiguration, issuer: string, frame: Frame | undefined): JsonObject {
  const { vct, config, description } = configuration;
  const typeObject = typeof vct === 'object' && vct !== null ? vct : {};
  return compact({
    name: config.display?.[0]?.name,
    description,
    display: config.display?.flatMap(typeDisplay),
    claims: claimsOf(configuration, frame),
    ...withLocales(typeObject),
    vct: vctOf(configuration, issuer),
  });
}

/** Converts displays of older drafts, which used `lang` instead of `locale`: current readers reject `lang`. */
function withLocales(typeObject: TypeObject): TypeObject {
  const { display, claims } = typeObject;
  return {
    ...typeObject,
    ...(display !== undefined && { display: display.map(withLocale).map(withReadableRendering) }),
    ...(claims !== undefined && {
      claims: claims.map((claim) => {
        const { display: displays } = claim;
        return Array.isArray(displays) ? { ...claim, display: displays.map(withLocale) } : claim;
      }),
    }),
  };
}

type TypeDisplay = NonNullable<TypeObject['display']>[number];

function withReadableRendering(display: TypeDisplay): TypeDisplay {
  const { rendering } = display ?? {};
  if (rendering?.simple === undefined) return display;
  return { ...display, rendering: { ...rendering, simple: withReadableImages(rendering.simple) } };
}

function withLocale<T>(display: T): T {
  if (typeof display !== 'object' || display === null || !('lang' in display)) return display;
  const { lang, ...otherProperties } = display;
  return { locale: lang, ...otherProperties } as T;
}

/** SD-JWT VC section 6: over the exact bytes that are served (W3C Subresource Integrity). */
export function integrityOf(document: string): string {
  return `sha256-${createHash('sha256').update(document).digest('base64')}`;
}

/** SD-JWT VC section 5.5.1: a display needs a language. */
function typeDisplay(display: CredentialDisplay): JsonObject[] {
  const { name, locale, description, ...rendering } = display;
  if (locale === undefined) return [];
  const { logo, background_image, background_color, text_color } = withReadableImages(rendering);
  const simple = compact({ logo, background_image, background_color, text_color });
  const hasRendering = Object.keys(simple).length > 0;
  return [compact({ locale, name, description, rendering: hasRendering ? { simple } : undefined })];
}

/** Lists all possible claims, with the descriptions that exist. */
function claimsOf(configuration: CredentialConfiguration, frame: Frame | undefined): JsonObject[] {
  const described = new Map((configuration.config.claims ?? []).map((claim) => [JSON.stringify(claim.path), claim]));
  return describedPaths(configuration, frame).map((path) => claimMetadata(described.get(JSON.stringify(path)) ?? { path }, frame));
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

/** A body without the property keeps the stored promise of integrity: only `false` removes it. */
export function keepTypeIntegrity<T extends { readonly vctIntegrity?: boolean | null | undefined }>(
  body: T,
  storedConfiguration: { readonly vctIntegrity?: boolean | null | undefined } | undefined,
): T {
  const isSilent = body.vctIntegrity === undefined || body.vctIntegrity === null;
  return isSilent && storedConfiguration?.vctIntegrity === true ? { ...body, vctIntegrity: true } : body;
}
