import { z } from 'zod';
import { listUpTo, textUpTo } from '../shared/bounds.ts';
import { strictInput } from '../shared/input-object.ts';
import { ImageUri } from '../shared/web-address.ts';
import { Color, Locale, Logo, DisplayText as Text } from '../tenants/display.ts';
import { DeclaredCapabilities, FORMAT_RULES } from './declared-capabilities.ts';

/** Claims path pointer (OpenID4VCI 1.0 appendix C). */
const ClaimPath = listUpTo(z.union([textUpTo(200), z.number().int(), z.null()]), 32).describe(
  'Property names, positions, or null for all entries of an array; such as `["address", "street"]`. In an mdoc, an element after ' +
    'the element name may also be a negative integer, which is a key of a map',
);
export type ClaimPath = z.infer<typeof ClaimPath>;

/** OpenID4VCI 1.0 appendix B.2: description of one claim for display. */
const ClaimDescription = strictInput({
  path: ClaimPath,
  mandatory: z.boolean().optional().describe('Every credential contains it; credentials without it are not issued'),
  display: z
    .array(strictInput({ name: Text.describe('Label of the claim'), locale: Locale.optional() }))
    .max(50)
    .optional()
    .describe('Name in wallets, by language'),
});

const CredentialDisplay = strictInput({
  name: Text.min(1).describe('Name of the credential as wallets show it'),
  locale: Locale.optional(),
  description: Text.optional().describe('For the user'),
  background_color: Color.optional().describe('Such as #12355b'),
  text_color: Color.optional().describe('Such as #ffffff'),
  background_image: strictInput({ uri: ImageUri.describe('https or data URL of an image') })
    .optional()
    .describe('Background colour of the card'),
  logo: Logo.optional().describe('Text colour of the card'),
});

/** OAuth scope-token (RFC 6749 section 3.3). */
const Scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'a scope without spaces, quotes or backslashes');

const ElementName = textUpTo(200);
const Namespace = textUpTo(500);

export const CREDENTIAL_FORMATS = ['dc+sd-jwt', 'mso_mdoc'] as const;

export const CredentialConfig = strictInput({
  format: z.enum(CREDENTIAL_FORMATS).describe('SD-JWT VC or ISO mdoc'),
  display: z
    .array(CredentialDisplay)
    .max(50)
    .optional()
    .describe('Display in wallets, by language; most wallets show the id of the configuration without one'),
  scope: Scope.optional().describe(
    'Value of `scope` in requests of wallets. Default: the id of the configuration. Configurations of one type may share it',
  ),
  claims: z
    .array(ClaimDescription)
    .max(500)
    .optional()
    .describe('claims in the metadata for wallets; mso_mdoc: paths begin with namespace and element'),
  docType: Namespace.optional().describe('mso_mdoc: the document type'),
  namespace: Namespace.optional().describe('mso_mdoc: the namespace of claims without one'),
  claimsByNamespace: z
    .record(Namespace, z.record(ElementName, z.json()))
    .optional()
    .describe('mso_mdoc: static elements of documents without other claims, by namespace'),
  ...DeclaredCapabilities,
})
  .superRefine((config, context) => {
    const isMdoc = config.format === 'mso_mdoc';
    const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (isMdoc && config.docType === undefined) refuse(['docType'], 'mso_mdoc requires a document type');
    for (const name of ['docType', 'namespace', 'claimsByNamespace'] as const) {
      if (!isMdoc && config[name] !== undefined) refuse([name], 'is only allowed for mso_mdoc');
    }
    // OpenID4VCI 1.0 section 12.2.4: one entry per language
    if (repeatsLocale(config.display ?? [])) refuse(['display'], 'each locale may be listed once');
    const claims = config.claims ?? [];
    claims.forEach(({ path, display = [] }, index) => {
      const [firstComponent, secondComponent, ...deeperComponents] = path;
      if (repeatsLocale(display)) refuse(['claims', index, 'display'], 'each locale may be listed once');
      if (path.length === 0) return; // the schema of the path reports this
      // OpenID4VCI 1.0 appendix C.2
      const isElement = typeof firstComponent === 'string' && typeof secondComponent === 'string';
      if (isMdoc && !isElement) refuse(['claims', index, 'path'], 'begins with a namespace and an element');
      // OpenID4VCI 1.0 appendix C.1: a credential is an object
      if (!isMdoc && typeof firstComponent !== 'string') refuse(['claims', index, 'path'], 'begins with a name');
      // OpenID4VCI 1.0 appendix C: keys of CBOR maps may be negative, positions may not
      const positions = isMdoc ? [secondComponent] : [secondComponent, ...deeperComponents];
      if (positions.some((part) => typeof part === 'number' && part < 0)) refuse(['claims', index, 'path'], 'a position is 0 or more');
    });
    for (const { index, text } of findContradictions(claims)) refuse(['claims', index, 'path'], text);
  })
  .meta({ id: 'CredentialConfig', allOf: [FORMAT_RULES] });
export type CredentialConfig = z.infer<typeof CredentialConfig>;

function repeatsLocale(display: readonly { locale?: string | undefined }[]): boolean {
  return new Set(display.map(({ locale }) => locale?.toLowerCase() ?? '')).size !== display.length;
}

/** OpenID4VCI 1.0 appendix B.3: a claim described twice, or one array by `null` and by index, is invalid. */
function findContradictions(claims: readonly { path: ClaimPath }[]) {
  const seenKinds = new Map<string, string>();
  const faults: { index: number; text: string }[] = [];
  claims.forEach(({ path }, index) => {
    const key = JSON.stringify(path);
    if (seenKinds.has(key)) faults.push({ index, text: 'this claim is described twice' });
    seenKinds.set(key, key);
    path.forEach((component, depth) => {
      const kind = component === null ? 'all' : typeof component === 'number' ? 'index' : 'member';
      const location = `at ${JSON.stringify(path.slice(0, depth).map((part) => (typeof part === 'number' ? null : part)))}`;
      const previousKind = seenKinds.get(location);
      if (previousKind !== undefined && previousKind !== kind) {
        faults.push({ index, text: 'two paths use the same place as different types of value' });
      }
      seenKinds.set(location, kind);
    });
  });
  return faults;
}
