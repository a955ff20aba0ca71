import { Ajv2020 } from 'ajv/dist/2020.js';

/** The requirements of TS 119 602 section 6 for every list type, as a schema. */
const text = { type: 'string', minLength: 1 };
const list = (items: object) => ({ type: 'array', minItems: 1, items });
const object = (required: Record<string, object>, optional: Record<string, object> = {}) => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(required),
  properties: { ...required, ...optional },
});
const names = list(object({ lang: text, value: text }));
const pages = list(object({ lang: text, uriValue: text }));
const postal = list(
  object(
    { lang: text, StreetAddress: text, Country: { type: 'string', pattern: '^[A-Z]{2}$' } },
    { Locality: text, StateOrProvince: text, PostalCode: text },
  ),
);
const dateTime = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$' };

const scheme = object(
  {
    LoTEVersionIdentifier: { const: 1 },
    LoTESequenceNumber: { type: 'integer', minimum: 1 },
    SchemeOperatorName: names,
    ListIssueDateTime: dateTime,
    NextUpdate: dateTime,
  },
  {
    LoTEType: text,
    SchemeOperatorAddress: object({ SchemeOperatorPostalAddress: postal, SchemeOperatorElectronicAddress: pages }),
    SchemeName: names,
    SchemeInformationURI: pages,
    StatusDeterminationApproach: text,
    SchemeTypeCommunityRules: pages,
    SchemeTerritory: { type: 'string', pattern: '^[A-Z]{2}$' },
    PolicyOrLegalNotice: {
      oneOf: [list(object({ LoTEPolicy: object({ lang: text, uriValue: text }) })), list(object({ LoTELegalNotice: text }))],
    },
    HistoricalInformationPeriod: { type: 'integer', minimum: 1 },
    DistributionPoints: list(text),
  },
);
const service = object({
  ServiceInformation: {
    ...object(
      { ServiceName: names, ServiceDigitalIdentity: object({ X509Certificates: list(object({ val: text })) }) },
      { ServiceTypeIdentifier: text, ServiceStatus: text, StatusStartingTime: dateTime },
    ),
    dependentRequired: { ServiceStatus: ['StatusStartingTime'], StatusStartingTime: ['ServiceStatus'] },
  },
});
const entity = object({
  TrustedEntityInformation: object({
    TEName: names,
    TEAddress: object({ TEPostalAddress: postal, TEElectronicAddress: pages }),
    TEInformationURI: pages,
  }),
  TrustedEntityServices: list(service),
});

const validate = new Ajv2020({ allErrors: true }).compile(
  object({ LoTE: object({ ListAndSchemeInformation: scheme }, { TrustedEntitiesList: list(entity) }) }),
);

/** Problems of a list; empty when it is valid. */
export function findLoteProblems(document: unknown): string[] {
  return validate(document) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}
