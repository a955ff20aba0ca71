import { z } from 'zod';
import { listUpTo, textUpTo } from '../shared/bounds.ts';
import { looseInput } from '../shared/input-object.ts';
import { ImageUri, NameUri, WebAddress } from '../shared/web-address.ts';
import { Color, Locale, DisplayText as Text } from '../tenants/display.ts';

/** W3C Subresource Integrity as used by SD-JWT VC section 6. */
const Integrity = z.string().regex(/^sha(256|384|512)-[A-Za-z0-9+/]{43,86}={0,2}$/, 'a hash such as sha256-…, in base64');

const Image = looseInput({
  uri: ImageUri.describe('http or https address, or a data URL of an image'),
  'uri#integrity': Integrity.optional(),
  alt_text: Text.optional(),
});

/** SD-JWT VC section 5.5.1 */
const Rendering = looseInput({
  simple: looseInput({
    logo: Image.optional(),
    background_image: Image.optional(),
    background_color: Color.optional(),
    text_color: Color.optional(),
  }).optional(),
  svg_templates: z
    .array(
      looseInput({
        uri: ImageUri,
        'uri#integrity': Integrity.optional(),
        properties: looseInput({
          orientation: z.enum(['portrait', 'landscape']).optional(),
          color_scheme: z.enum(['light', 'dark']).optional(),
          contrast: z.enum(['normal', 'high']).optional(),
        }).optional(),
      }),
    )
    .max(50)
    .optional(),
});

/** The language of a display; drafts before the twelfth named it `lang`. */
const language = { locale: Locale.optional(), lang: Locale.optional() };
type InLanguage = { readonly locale?: string | undefined; readonly lang?: string | undefined };
const NO_LANGUAGE = 'locale is the language';
/** The same rule for the API document. */
const IN_A_LANGUAGE = { allOf: [{ anyOf: [{ required: ['locale'] }, { required: ['lang'] }] }] };

const hasLanguage = ({ locale, lang }: InLanguage) => (locale ?? lang) !== undefined;

/** SD-JWT VC section 5.5 */
const TypeDisplay = looseInput({
  ...language,
  name: Text.min(1).describe('Of the type, for users'),
  description: Text.optional(),
  rendering: Rendering.optional(),
})
  .refine(hasLanguage, { message: NO_LANGUAGE, path: ['locale'] })
  .meta(IN_A_LANGUAGE);

/** SD-JWT VC section 5.6.2 */
const ClaimDisplay = looseInput({ ...language, label: Text.min(1).describe('Of the claim, for users'), description: Text.optional() })
  .refine(hasLanguage, { message: NO_LANGUAGE, path: ['locale'] })
  .meta(IN_A_LANGUAGE);

const Path = listUpTo(z.union([textUpTo(200), z.number().int().min(0), z.null()]), 32);

/** SD-JWT VC section 5.6 */
const TypeClaim = looseInput({
  path: Path.describe('Property names, positions, or null for all entries of an array'),
  display: z.array(ClaimDisplay).max(50).optional(),
  mandatory: z.boolean().optional().describe('Required in every credential'),
  sd: z
    .enum(['always', 'allowed', 'never'])
    .optional()
    .describe('Selective disclosure of the claim; the frame of the configuration must match'),
  svg_id: z
    .string()
    .max(200)
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'letters, digits and underscores; the first character is not a digit')
    .optional(),
});
export type TypeClaim = z.infer<typeof TypeClaim>;

export const TypeMetadataInput = looseInput({
  vct: NameUri.optional().describe('The type. Default: a type that the service hosts, `<PUBLIC_URL>/<tenant>/vct/<id>`'),
  name: Text.optional().describe('For developers. Default: the first display name'),
  description: z.string().max(5000).optional().describe('For developers. Default: that of the configuration'),
  extends: NameUri.optional().describe('The type that this one extends'),
  'extends#integrity': Integrity.optional().describe('Hash of its document, such as sha256-…'),
  schema_uri: WebAddress.optional().describe('A JSON Schema for verifiers; not applied by the service'),
  'schema_uri#integrity': Integrity.optional().describe('Its hash, such as sha256-…'),
  display: z.array(TypeDisplay).max(50).optional().describe('SD-JWT VC section 5.5. Default: derived from `config.display`'),
  claims: z.array(TypeClaim).max(500).optional().describe('SD-JWT VC section 5.6. Default: derived from `config.claims` and the frame'),
})
  .superRefine(({ display = [], claims = [] }, context) => {
    const refuse = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (repeats(display.map(languageOf))) refuse(['display'], 'each locale may be listed once');
    claims.forEach(({ display: claimDisplays = [] }, index) => {
      if (repeats(claimDisplays.map(languageOf))) refuse(['claims', index, 'display'], 'each locale may be listed once');
    });
    const paths = claims.map(({ path }) => JSON.stringify(path));
    if (repeats(paths)) refuse(['claims'], 'a claim is described twice');
    const ids = claims.flatMap(({ svg_id }) => (svg_id === undefined ? [] : [svg_id]));
    if (repeats(ids)) refuse(['claims'], 'an svg_id is listed twice');
  })
  .meta({ id: 'TypeMetadata' });

function languageOf({ locale, lang }: InLanguage): string {
  return (locale ?? lang ?? '').toLowerCase();
}

function repeats(texts: readonly string[]): boolean {
  return new Set(texts).size !== texts.length;
}
