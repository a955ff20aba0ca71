import { z } from 'zod';
import { ConfigurationId } from '../issuance/configuration.ts';
import { WebAddress } from '../issuance/web-address.ts';
import type { JsonObject } from '../shared/json.ts';
import { CREDENTIAL_SERVICE_TYPES, isIssuanceType } from '../trust-lists/select-certificates.ts';
import { WebhookConfig } from '../webhooks/webhook.ts';
import { type DcqlQuery, SupportedDcqlQuery } from './dcql/query.ts';

const QueryId = z.string().regex(/^[A-Za-z0-9_-]+$/);

/** OpenID4VP 1.0 section 8.4; members beyond these belong to the type and are sent as they stand. */
export const TransactionData = z
  .looseObject({
    type: z.string().min(1).max(500),
    credential_ids: z.array(QueryId).min(1).max(100),
    transaction_data_hashes_alg: z
      .array(z.enum(['sha-256', 'sha-384', 'sha-512']))
      .min(1)
      .optional(),
  })
  .meta({ id: 'TransactionData' });

/** OpenID4VP 1.0 section 5.1 `verifier_info`. */
const Attached = z.object({
  format: z.string().min(1).max(200),
  data: z.record(z.string(), z.json()).transform((value) => value as JsonObject),
  credential_ids: z.array(QueryId).min(1).optional(),
});

/** Whose credentials are accepted: a certificate of ours or of somebody else. Without any, none is. */
export const TrustAnchorConfig = z
  .union([
    z.strictObject({
      certificate: z
        .string()
        .min(1)
        .max(20_000)
        .describe('PEM; a CA certificate, or an issuer certificate as a pin'),
    }),
    z.strictObject({ keyChainId: z.string().min(1).max(128).describe('the CA of an own key chain') }),
    z.strictObject({
      trustList: WebAddress.describe('address of a signed list of trusted entities (ETSI TS 119 602)'),
      signedBy: z
        .array(z.string().min(1).max(20_000))
        .min(1)
        .max(20)
        .optional()
        .describe(
          'PEM; who may sign the list: its certificate, or a CA. Left out only for a list of this service',
        ),
      serviceTypes: z
        .array(
          z
            .string()
            .max(300)
            .refine(isIssuanceType, 'the type of a service that issues, which ends with /Issuance'),
        )
        .min(1)
        .max(20)
        .optional()
        .describe(
          `Services whose certificates are accepted; unless stated ${CREDENTIAL_SERVICE_TYPES.join(', ')}`,
        ),
    }),
  ])
  .meta({ id: 'TrustAnchor' });

export type TrustAnchorConfig = z.infer<typeof TrustAnchorConfig>;

/** `{sessionId}` is replaced. OpenID4VP 1.0 section 8.2: absolute; a fragment is the frontend's own business. */
export const RedirectUri = z
  .string()
  .max(2048)
  .refine((text) => {
    const url = URL.canParse(text.replaceAll('{sessionId}', 'x'))
      ? new URL(text.replaceAll('{sessionId}', 'x'))
      : undefined;
    return url !== undefined && !['javascript:', 'data:', 'file:', 'vbscript:'].includes(url.protocol);
  }, 'an absolute address, for example https://shop.example/done?session={sessionId}');

const Id = z.string().min(1).max(128);
const Description = z.string().max(1000).nullable().optional();
const LifeTime = z.number().int().min(30).max(86_400);
const TransactionDataList = z.array(TransactionData).min(1).max(20);
const RegistrationCert = z.null('registration certificates are not supported by this release').optional();
const AttachedList = z.array(Attached).min(1).max(20).nullable().optional();
const TrustAnchors = z.array(TrustAnchorConfig).max(200);
const ResponseMode = z.enum(['direct_post.jwt', 'direct_post']);

export const PresentationConfigurationBody = z
  .object({
    id: ConfigurationId,
    dcql_query: SupportedDcqlQuery,
    description: Description,
    lifeTime: LifeTime.default(300).describe('seconds for which a request can be answered'),
    transaction_data: TransactionDataList.nullable().optional(),
    registrationCert: RegistrationCert,
    webhook: WebhookConfig.nullable().optional(),
    attached: AttachedList,
    redirectUri: RedirectUri.nullable().optional(),
    accessKeyChainId: Id.nullable().optional(),
    trustAnchors: TrustAnchors.optional(),
    responseMode: ResponseMode.default('direct_post.jwt'),
  })
  .superRefine((body, context) => {
    for (const fault of transactionDataFaults(body.transaction_data ?? [], body.dcql_query)) {
      context.addIssue({ code: 'custom', path: ['transaction_data', ...fault.path], message: fault.message });
    }
    for (const fault of attachedFaults(body.attached ?? [], body.dcql_query)) {
      context.addIssue({ code: 'custom', path: ['attached', ...fault.path], message: fault.message });
    }
    for (const fault of trustListFaults(body.trustAnchors ?? [], body.dcql_query)) {
      context.addIssue({ code: 'custom', ...fault });
    }
  })
  .meta({ id: 'PresentationConfigurationInput' });
export type PresentationConfigurationBody = z.infer<typeof PresentationConfigurationBody>;

/** Members replace those of the stored configuration; null resets to the default. The whole is validated then. */
export const PresentationConfigurationUpdate = z
  .object({
    id: ConfigurationId.optional(),
    dcql_query: SupportedDcqlQuery.optional(),
    description: Description,
    lifeTime: LifeTime.nullable().optional(),
    transaction_data: TransactionDataList.nullable().optional(),
    registrationCert: RegistrationCert,
    webhook: WebhookConfig.nullable().optional(),
    attached: AttachedList,
    redirectUri: RedirectUri.nullable().optional(),
    accessKeyChainId: Id.nullable().optional(),
    trustAnchors: TrustAnchors.nullable().optional(),
    responseMode: ResponseMode.nullable().optional(),
  })
  .meta({ id: 'PresentationConfigurationUpdate' });
export type PresentationConfigurationUpdate = z.infer<typeof PresentationConfigurationUpdate>;

/** One presentation request that the tenant makes again and again. */
export type PresentationConfiguration = PresentationConfigurationBody & {
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** OpenID4VP 1.0 section 5.1: what is attached for certain queries names queries of this request. */
function attachedFaults(entries: readonly z.infer<typeof Attached>[], query: DcqlQuery) {
  const ids = new Set(query.credentials.map(({ id }) => id));
  return entries.flatMap((entry, index) =>
    (entry.credential_ids ?? []).flatMap((id, position) =>
      ids.has(id)
        ? []
        : [{ path: [index, 'credential_ids', position], message: 'no credential query has this id' }],
    ),
  );
}

/** Each list is asked for at every response. */
const MAX_TRUST_LISTS = 20;

/** OpenID4VP 1.0 section 6.1.1: whoever asks for issuers of a list has to know who signs it. */
function trustListFaults(anchors: readonly TrustAnchorConfig[], { credentials }: DcqlQuery) {
  const lists = anchors.flatMap((anchor) => ('trustList' in anchor ? [anchor.trustList] : []));
  const asked = credentials.flatMap(({ trusted_authorities = [] }, i) =>
    trusted_authorities.flatMap(({ type, values }, j) =>
      type === 'etsi_tl'
        ? values.map((value, k) => ({
            value,
            path: ['dcql_query', 'credentials', i, 'trusted_authorities', j, 'values', k],
          }))
        : [],
    ),
  );
  const faults = asked
    .filter(({ value }) => !lists.includes(value))
    .map(({ path }) => ({ path, message: 'no entry of trustAnchors has this trustList' }));
  if (new Set(lists).size > MAX_TRUST_LISTS) {
    faults.push({ path: ['trustAnchors'], message: `at most ${MAX_TRUST_LISTS} trust lists` });
  }
  return faults;
}

/** OpenID4VP 1.0 section 8.4: entries name queries of this request, and binding is mandatory for them. */
export function transactionDataFaults(
  entries: readonly z.infer<typeof TransactionData>[],
  query: DcqlQuery,
): { path: (string | number)[]; message: string }[] {
  const queries = new Map(query.credentials.map((credential) => [credential.id, credential]));
  return entries.flatMap((entry, index) =>
    entry.credential_ids.flatMap((id, position) => {
      const credential = queries.get(id);
      const path = [index, 'credential_ids', position];
      if (credential === undefined) return [{ path, message: 'no credential query has this id' }];
      if (credential.format === 'mso_mdoc') {
        return [{ path, message: 'transaction data for an mso_mdoc is not supported by this release' }];
      }
      return credential.require_cryptographic_holder_binding === false
        ? [{ path, message: 'transaction data needs holder binding, which this query switches off' }]
        : [];
    }),
  );
}
