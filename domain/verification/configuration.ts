import { object, z } from 'zod';
import { type DcqlQuery, SupportedDcqlQuery } from '../dcql/query.ts';
import { requiredTrustLists } from '../dcql/required-trust-lists.ts';
import { MDL_PROFILES } from '../formats/mdoc/driving-licence.ts';
import { Purposes, RegistrationCertificateRequest } from '../registrar/registration-certificate-request.ts';
import { LINE_PATTERN, RETURN_PATTERN } from '../shared/address-patterns.ts';
import { ConfigurationId, listUpTo, Reference, textUpTo, wholeNumber } from '../shared/bounds.ts';
import { looseInput, strictInput } from '../shared/input-object.ts';
import { InvocationUri } from '../shared/invocation-uri.ts';
import { estimateJsonLength, type JsonObject } from '../shared/json.ts';
import type { ChangeRules } from '../shared/merge-change.ts';
import { isSchemeOfApp } from '../shared/redirect-address.ts';
import type { Timed } from '../shared/resource.ts';
import { updateOf } from '../shared/update-of.ts';
import { isUri, normalUri, withPlaceholder } from '../shared/uri.ts';
import { isWebAddress, WebAddress } from '../shared/web-address.ts';
import { WebhookConfig } from '../webhooks/webhook.ts';
import { CertificateRevocationChoice } from './certificate-revocation.ts';
import { dcApiProperties, findDcApiProblems } from './dc-api-settings.ts';
import { INVOCATION_URI } from './request-object.ts';
import { SCA_SCHEMAS } from './sca/payload.ts';
import { findTransactionDataProblems } from './transaction-data-problems.ts';
import { OWN_AUTHORITIES, TrustAnchorConfig } from './trust-anchor.ts';

const QueryId = z.string().regex(/^[A-Za-z0-9_-]+$/);

/** OpenID4VP 1.0 section 8.4; further properties belong to the type and are sent unchanged. */
export const TransactionData = looseInput({
  type: textUpTo(500),
  credential_ids: listUpTo(QueryId, 100),
  transaction_data_hashes_alg: z
    .array(z.enum(['sha-256', 'sha-384', 'sha-512']))
    .min(1)
    .optional(),
}).meta({ id: 'TransactionData' });

/** OpenID4VP 1.0 section 5.1 `verifier_info`. */
const Attached = strictInput({
  format: textUpTo(200),
  data: z.union([z.record(z.string(), z.json()).transform((value) => value as JsonObject), textUpTo(100_000)]),
  credential_ids: z.array(QueryId).min(1).optional(),
});

/** `{sessionId}` is replaced. OpenID4VP 1.0 section 8.2: an absolute URI; the frontend may use the fragment. */
export const RedirectUri = z
  .string()
  .overwrite((text) => withPlaceholder('{sessionId}', text, normalUri))
  .max(2048)
  .refine((text) => {
    const filled = text.replaceAll('{sessionId}', 'x');
    const url = URL.parse(filled);
    return isUri(filled) && url !== null && (isWebAddress(url.href) || isSchemeOfApp(url.protocol));
  }, 'an https address without credentials and control characters, for example https://shop.example/done?session={sessionId}, or a private scheme with a dot such as com.example.app:/done')
  .meta({ pattern: RETURN_PATTERN });

/** The element in which a device signs the hash, by type of transaction data. */
const ConfirmingElements = z
  .record(textUpTo(500), z.strictObject({ namespace: textUpTo(500), element: textUpTo(500) }))
  .refine((elements) => Object.keys(elements).length <= 50, 'at most 50 types');

/** The TS12 schema of the payload, by type of transaction data. */
const ScaSchemaByType = z
  .record(textUpTo(500), z.enum(SCA_SCHEMAS))
  .refine((schemas) => Object.keys(schemas).length <= 50, 'at most 50 types');

const PRESENTED_VALUES = ['disclosed', 'requested'] as const;
export type PresentedValues = (typeof PRESENTED_VALUES)[number];

/** The query is part of each request, and each response is validated against it. */
const MAX_QUERY_LENGTH = 65_536;

export const PresentationConfigurationBody = object({
  id: ConfigurationId,
  dcql_query: SupportedDcqlQuery.refine((query) => estimateJsonLength(query) <= MAX_QUERY_LENGTH, {
    message: `a query has at most ${MAX_QUERY_LENGTH} characters as JSON`,
  }),
  description: z.string().max(1000).nullish(),
  lifeTime: wholeNumber(1, 31_536_000)
    .default(300)
    .describe(
      'Seconds for which a request can be answered; its session has the same lifetime, also if sessions of the ' +
        'tenant have a shorter retention. At most a year, since the signing access certificate expires',
    ),
  transaction_data: z.array(TransactionData).max(20).nullish(),
  transactionDataElements: ConfirmingElements.nullish().describe(
    'For transaction data that an mso_mdoc confirms: by type, the device-signed element with the hash of the entry, a byte ' +
      'string or its base64url text, or several of them in an array. The issuer must authorize the device to sign the element',
  ),
  transactionDataSchemas: ScaSchemaByType.nullish().describe(
    'For transaction data of a strong customer authentication with a type of a rulebook: by type, the schema of TS12 ' +
      'of its payload. Types that TS12 defines need no entry. Payloads are validated when they are written, and ' +
      'a key binding that confirms one contains how the user was authenticated',
  ),
  registrationCert: RegistrationCertificateRequest.nullish(),
  purpose: Purposes.nullish().describe(
    'Purpose of the request, by language (OpenID4VP 1.0 section 15.3). Wallets show it from the registration certificate ' +
      'that registrationCert orders with body, unless that has its own purpose. A request has no other place for ' +
      'it; without such a certificate users see it only on the page of the request (pageUrl)',
  ),
  webhook: WebhookConfig.nullish(),
  attached: z.array(Attached).max(20).nullish(),
  redirectUri: RedirectUri.nullish(),
  values: z
    .enum(PRESENTED_VALUES)
    .nullish()
    .describe(
      'Claims for sessions and backends. disclosed (default): all that the wallet disclosed, without what ' +
        'binds it to its holder and its status. requested: only the requested claims',
    ),
  requireResponseCode: z
    .boolean()
    .nullish()
    .describe(
      'True: the result waits until the browser returns the response_code of the redirect. GET /session/{id} with it ' +
        'completes the session and calls the webhook. A request then requires a redirectUri, here or its own. Not ' +
        'through the Digital Credentials API, which has no redirect. With true there is no crossDeviceUri. Under a ' +
        'profile, a configuration without this property waits for the response_code on the same device, and has a crossDeviceUri',
    ),
  accessKeyChainId: Reference.nullish(),
  trustAnchors: z
    .array(TrustAnchorConfig)
    .max(200)
    .default([OWN_AUTHORITIES])
    .describe(
      'Accepted issuers. Default: the authorities of the tenant; an empty array accepts none. Trust lists that the query names ' +
        '(etsi_tl) are added with the certificate of their signer when they are written',
    ),
  mdlProfile: z
    .enum(MDL_PROFILES)
    .nullish()
    .describe(
      'Requirements for signers of an org.iso.18013.5.1.mDL. iso-18013-5 (default): a certificate for ' +
        'document signers (extended key usage 1.0.18013.5.1.2, critical) of the country of its authority and of the ' +
        'licence. none: the same requirements as for signers of other mdocs',
    ),
  typeMetadata: z
    .enum(['off', 'enforced'])
    .nullish()
    .describe(
      'Validation of each SD-JWT VC against the metadata of its type: claims that must, or must not, be selectively disclosable ' +
        '(sd), and mandatory claims. Metadata of types that this tenant hosts are read locally; others are fetched from the type, ' +
        'an https address, by the hash in the credential (vct#integrity). Unavailable metadata reject the credential. Default: off',
    ),
  certificateRevocation: CertificateRevocationChoice,
  responseMode: z
    .enum(['direct_post.jwt', 'direct_post'])
    .default('direct_post.jwt')
    .describe('direct_post.jwt encrypts responses, direct_post does not; also through the Digital Credentials API'),
  clientIdPrefix: z
    .enum(['x509_hash', 'x509_san_dns', 'redirect_uri'])
    .default('x509_hash')
    .describe(
      'Client identifier of the request: the hash of the access certificate, a DNS name of it, which is then the ' +
        'host of PUBLIC_URL, or unsigned the response address',
    ),
  requestUriMethod: z.enum(['get', 'post']).default('get').describe('post lets wallets send their metadata and a nonce'),
  invocationUri: InvocationUri.default(INVOCATION_URI).describe(
    'URI that starts the wallet: openid4vp://, haip-vp://, or the https address of a wallet',
  ),
  clientName: z
    .string()
    .min(1)
    .max(200)
    .regex(new RegExp(LINE_PATTERN), 'one line of text')
    .nullish()
    .describe(
      'Sent as client_name of client_metadata: the name of the verifier that wallets may show. OpenID4VP 1.0 does not define it: most wallets ignore ' +
        'it, none has a reason to trust it, and some test suites warn of it, so it is sent only if it is set here',
    ),
  logoUri: WebAddress.nullish().describe('Sent as logo_uri of client_metadata, like clientName'),
  ...dcApiProperties,
})
  .superRefine((body, context) => {
    for (const { path, message } of findPresentationProblems(body)) context.addIssue({ code: 'custom', path: [...path], message });
  })
  .meta({ id: 'PresentationConfigurationInput' });
export type PresentationConfigurationBody = z.infer<typeof PresentationConfigurationBody>;

/** Rules that validate a change of a stored presentation configuration. */
export const PRESENTATION_CHANGE_RULES: ChangeRules<typeof PresentationConfigurationBody> = {
  schema: PresentationConfigurationBody,
  crossFieldFaults: (body) => findPresentationProblems(body).map(({ path, message }) => ({ path: path.join('.'), message })),
  related: [
    ['transaction_data', 'dcql_query', 'transactionDataElements', 'transactionDataSchemas', 'dcApiProtocols'],
    ['attached', 'dcql_query'],
    ['trustAnchors', 'dcql_query'],
    ['furtherAccessKeyChainIds', 'dcApiRequest', 'dcApiProtocols'],
    ['dcApiProtocols', 'dcql_query'],
    ['clientIdPrefix', 'requestUriMethod'],
  ],
};

/** Properties replace those of the stored configuration; null resets to the default. */
export const PresentationConfigurationUpdate = updateOf(PresentationConfigurationBody).meta({ id: 'PresentationConfigurationUpdate' });
export type PresentationConfigurationUpdate = z.infer<typeof PresentationConfigurationUpdate>;

/** A presentation request that the tenant creates repeatedly. */
export type PresentationConfiguration = PresentationConfigurationBody & Timed;

type Fault = { readonly path: readonly (string | number)[]; readonly message: string };

function findPresentationProblems(body: CrossFields): readonly Fault[] {
  const query = body.dcql_query;
  const prefixPaths = (faults: readonly Fault[], property: string) =>
    faults.map(({ path, message }) => ({ path: [property, ...path], message }));
  const faults = [
    ...prefixPaths(findTransactionDataProblems(body.transaction_data ?? [], query, body), 'transaction_data'),
    ...prefixPaths(findAttachmentProblems(body.attached ?? [], query), 'attached'),
    ...findTrustListProblems(body.trustAnchors, query),
    ...findDcApiProblems(body),
  ];
  // OpenID4VP 1.0 section 5.9.3: such a request is unsigned
  if (body.clientIdPrefix === 'redirect_uri' && body.requestUriMethod === 'post') {
    const message = 'redirect_uri sends the request itself, so there is nothing to fetch';
    faults.push({ path: ['requestUriMethod'], message });
  }
  return faults;
}

type CrossFields = Parameters<typeof findDcApiProblems>[0] &
  Parameters<typeof findTransactionDataProblems>[2] & {
    readonly transaction_data?: Parameters<typeof findTransactionDataProblems>[0] | null | undefined;
    readonly dcql_query: DcqlQuery;
    readonly attached?: readonly z.infer<typeof Attached>[] | null | undefined;
    readonly trustAnchors: readonly TrustAnchorConfig[];
    readonly clientIdPrefix: string;
    readonly requestUriMethod: string;
  };

/** OpenID4VP 1.0 section 5.1: attachments for certain queries must name queries of this request. */
function findAttachmentProblems(entries: readonly z.infer<typeof Attached>[], query: DcqlQuery) {
  const ids = new Set(query.credentials.map(({ id }) => id));
  return entries.flatMap((entry, index) =>
    (entry.credential_ids ?? []).flatMap((id, position) =>
      ids.has(id) ? [] : [{ path: [index, 'credential_ids', position], message: 'no credential query has this id' }],
    ),
  );
}

/** Each list is evaluated for every response. */
const MAX_TRUST_LISTS = 20;

function findTrustListProblems(anchors: readonly TrustAnchorConfig[], query: DcqlQuery) {
  const listUris = anchors.flatMap((anchor) => ('trustList' in anchor ? [anchor.trustList] : []));
  const demandedUris = requiredTrustLists(query).flatMap(({ uri }) => (listUris.includes(uri) ? [] : [uri]));
  return listUris.length + new Set(demandedUris).size <= MAX_TRUST_LISTS
    ? []
    : [{ path: ['trustAnchors'], message: `at most ${MAX_TRUST_LISTS} trust lists` }];
}
