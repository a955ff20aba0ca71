import { z } from 'zod';
import { listUpTo, textUpTo } from '../shared/bounds.ts';

/** Limit of a name, a value or an address in characters. */
export const MAX_TEXT = 1_000;
const MAX_TYPES = 100;
const Text = textUpTo(MAX_TEXT);

/** The credential formats this service verifies (OpenID4VP 1.0 appendix B). */
export const SUPPORTED_FORMATS = ['dc+sd-jwt', 'mso_mdoc'] as const;
export type SupportedFormat = (typeof SUPPORTED_FORMATS)[number];

/** OpenID4VP 1.0 appendix B.3.5. */
export const SdJwtMeta = z.looseObject({ vct_values: listUpTo(Text, MAX_TYPES) });
/** OpenID4VP 1.0 appendix B.2.3. */
export const MdocMeta = z.looseObject({ doctype_value: Text });

export const META_OF_FORMAT = new Map<string, typeof SdJwtMeta | typeof MdocMeta>([
  ['dc+sd-jwt', SdJwtMeta],
  ['mso_mdoc', MdocMeta],
]);
