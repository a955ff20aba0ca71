import { strictObject, z } from 'zod';
import { Country, Line, listUpTo, wholeNumber } from '../shared/bounds.ts';
import { isJsonObject } from '../shared/json.ts';
import { ContactUri, HarmlessUri as Uri, WebAddress } from '../shared/web-address.ts';
import { isListOfIssuers, LIST_TYPES } from './list-profiles.ts';

/** BCP 47, restricted to common forms. */
export const Language = z.string().regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$/, 'a language, such as en');

const texts = <S extends z.ZodType>(entry: S) => listUpTo(entry, 20);
const Texts = texts(strictObject({ lang: Language, value: Line }));
const Pages = texts(strictObject({ lang: Language, uriValue: WebAddress }));
const Contacts = texts(strictObject({ lang: Language, uriValue: ContactUri }));

const PostalAddress = strictObject({
  lang: Language,
  StreetAddress: Line,
  Locality: Line.optional(),
  StateOrProvince: Line.optional(),
  PostalCode: Line.optional(),
  Country,
});

const Policy = strictObject({ LoTEPolicy: strictObject({ lang: Language, uriValue: WebAddress }) });

/** The text of a notice. Earlier releases stored it with a language, for which the document has no property (TS 119 602 section 6.3.11). */
export function noticeText(notice: unknown): unknown {
  const isOlder = isJsonObject(notice) && Object.keys(notice).sort().join() === 'lang,value';
  return isOlder ? notice['value'] : notice;
}

const LegalNotice = strictObject({ LoTELegalNotice: z.preprocess(noticeText, Line) });

function isHomogeneous(entries: readonly object[]): boolean {
  return new Set(entries.map((entry) => 'LoTEPolicy' in entry)).size <= 1;
}

const SERVICE_PROPERTIES = ['LoTEVersionIdentifier', 'LoTESequenceNumber', 'ListIssueDateTime', 'NextUpdate', 'TrustedEntitiesList'];

/** Unknown properties are rejected: an administrator who sets a number or a time would otherwise believe that it takes effect. */
function describeUnknownKey(issue: { readonly code?: string; readonly keys?: readonly string[] }) {
  if (issue.code !== 'unrecognized_keys') return undefined;
  const [serviceProperty] = (issue.keys ?? []).filter((key) => SERVICE_PROPERTIES.includes(key));
  if (serviceProperty !== undefined) return `${serviceProperty} is written by the service and cannot be set`;
  return `${(issue.keys ?? []).join(', ')} cannot be set`;
}

/** Scheme information that the operator may set (TS 119 602 section 6.3). Everything else in a list is written by the service. */
export const SchemeInformation = strictObject(
  {
    LoTEType: Uri.refine(isListOfIssuers, 'lists of registrars and registers are not supported')
      .optional()
      .describe(
        `Type of the list, which determines the types of its services: ${LIST_TYPES.join(', ')}; without one of these, issuers of any attestations`,
      ),
    SchemeOperatorName: Texts.optional().describe('Default: the name of the tenant'),
    SchemeOperatorAddress: strictObject({
      SchemeOperatorPostalAddress: texts(PostalAddress),
      SchemeOperatorElectronicAddress: Contacts,
    }).optional(),
    SchemeName: Texts.optional(),
    SchemeInformationURI: Pages.optional(),
    StatusDeterminationApproach: Uri.optional(),
    SchemeTypeCommunityRules: texts(strictObject({ lang: Language, uriValue: Uri })).optional(),
    SchemeTerritory: Country.optional(),
    PolicyOrLegalNotice: texts(z.union([Policy, LegalNotice]))
      .refine(isHomogeneous, 'either policies or notices, not both')
      .optional()
      .describe('Either addresses of policies or texts of notices'),
    HistoricalInformationPeriod: wholeNumber(1, 65_535).optional(),
    DistributionPoints: texts(WebAddress).optional(),
  },
  { error: describeUnknownKey },
).meta({ id: 'SchemeInformation' });
export type SchemeInformation = z.infer<typeof SchemeInformation>;

/** The document's structure, reduced to configurable properties. */
export const TrustListData = strictObject(
  { LoTE: strictObject({ ListAndSchemeInformation: SchemeInformation.optional() }, { error: describeUnknownKey }).optional() },
  { error: describeUnknownKey },
).meta({ id: 'TrustListData' });
export type TrustListData = z.infer<typeof TrustListData>;
