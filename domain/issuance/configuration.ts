import { object, strictObject, z } from 'zod';
import { InteractiveAction } from '../oauth/interactive-action.ts';
import { ConfigurationId, listUpTo, Reference, textUpTo } from '../shared/bounds.ts';
import type { FieldError } from '../shared/failure.ts';
import { includesProfile, type Profile } from '../shared/finding.ts';
import type { JsonObject } from '../shared/json.ts';
import type { ChangeRules } from '../shared/merge-change.ts';
import type { Timed } from '../shared/resource.ts';
import { updateOf } from '../shared/update-of.ts';
import { NameUri } from '../shared/web-address.ts';
import { WebhookConfig } from '../webhooks/webhook.ts';
import { findConfigurationProblems } from './configuration-rules.ts';
import { CredentialConfig } from './credential-config.ts';
import { CredentialReusePolicy, findReusePolicyProblems } from './reuse-policy.ts';
import { findSubjectProblems, SubjectClaims } from './subject-claims.ts';
import { TypeMetadataInput } from './type-metadata-input.ts';

const Name = textUpTo(2048);
const Names = listUpTo(Name, 500);

const DcqlObject = z.record(z.string(), z.json()).meta({ id: 'DcqlObject' });

const Attestation = strictObject({
  claims: z.array(DcqlObject).max(500).optional().describe('DCQL claims queries'),
  credentials: listUpTo(DcqlObject, 100).describe('DCQL credential queries for the credentials of the relying party'),
  credential_sets: z.array(DcqlObject).max(100).optional().describe('DCQL credential sets over these'),
}).meta({ id: 'AttestationOfRelyingParty' });

/** Restricts the relying parties to which a wallet may show the credential; published in the issuer's metadata. */
const DisclosurePolicy = z
  .discriminatedUnion('policy', [
    strictObject({ policy: z.literal('none').describe('To anybody') }),
    strictObject({
      policy: z.literal('allowList').describe('Allows the named relying parties'),
      values: Names.describe('Relying parties, by their names in access certificates; at least one'),
    }),
    strictObject({
      policy: z.literal('rootOfTrust').describe('Allows relying parties with a certificate of one of these authorities'),
      values: z.union([Name, Names]).describe('Names of the authorities, at least one'),
    }),
    strictObject({
      policy: z.literal('attestationBased').describe('Allows relying parties that present an attestation'),
      values: listUpTo(Attestation, 100).describe('Alternatives; one is enough'),
    }),
  ])
  .meta({ id: 'DisclosurePolicy' });

/** OpenID4VCI 1.0 section 12.2.4: accepted values; an empty object accepts any attestation. */
const KeyAttestationsRequired = strictObject({
  key_storage: listUpTo(textUpTo(500), 20)
    .optional()
    .describe('Accepted attack resistance of the key storage, such as `iso_18045_high`, at least one. Default: any'),
  user_authentication: listUpTo(textUpTo(500), 20)
    .optional()
    .describe('Accepted attack resistance of the user authentication for the key, at least one. Default: any'),
  preferred_key_storage_status_period: z
    .number()
    .int()
    .min(0)
    .max(315_360_000)
    .optional()
    .describe(
      'Seconds for which wallet providers have to maintain the status of the attestation (TS3 1.5 section 2.4); for ' +
        'credentials that follow it, at least their lifetime. Default: the choice of the wallet',
    ),
});

const PROOF_TYPES = ['jwt', 'attestation'] as const;
export type ProofType = (typeof PROOF_TYPES)[number];

const jsonObject = (what: string) => z.record(z.string(), z.json(), what).transform((value) => value as JsonObject);

/** JSON Schema for the API document: an mdoc takes its type and its elements from other properties. */
const SD_JWT_ONLY_PROPERTIES = {
  if: { properties: { config: { properties: { format: { const: 'mso_mdoc' } }, required: ['format'] } }, required: ['config'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { properties: { vct: { type: 'null' }, disclosureFrame: { type: 'null' } } },
};

export const CredentialConfigurationBody = object({
  id: ConfigurationId.describe('`credential_configuration_id` of wallets and offers'),
  config: CredentialConfig.describe('Published metadata of the credential, and its format'),
  description: z.string().max(1000).nullish().describe('For administrators, and in the metadata of a hosted type'),
  vct: z
    .union([NameUri, TypeMetadataInput])
    .nullish()
    .describe(
      'dc+sd-jwt: the type, or its metadata, which the service hosts if they name no type. The rules of the metadata for ' +
        'claims (`mandatory`, `sd`) apply to every credential',
    ),
  vctIntegrity: z
    .boolean()
    .nullish()
    .describe(
      'Writes the hash of the hosted metadata into credentials (`vct#integrity`). The document is kept as it is at that moment: ' +
        'its sources (vct, config.display, config.claims, frame, description, names of claims and schema) cannot be changed, nor the ' +
        'configuration deleted, until this is set to false; leaving it out keeps it. After that, wallets reject a changed document for issued credentials',
    ),
  claims: jsonObject('an object of claims')
    .nullish()
    .describe(
      'Static claims, the same for every holder; used if neither the offer nor `claimsWebhook` provides claims. ' +
        'mso_mdoc: elements, flat or keyed by namespace',
    ),
  claimsWebhook: WebhookConfig.nullish().describe(
    'Called for the claims when a wallet requests the credential; see `claims` among the webhooks',
  ),
  notificationWebhook: WebhookConfig.nullish().describe(
    'Called for notifications of the wallet about a credential, unless the offer has a `notifyWebhook`; see `notification` among the webhooks',
  ),
  iaeActions: z
    .array(InteractiveAction)
    .max(10)
    .nullish()
    .describe(
      'Steps of the user before the issuance, in this order, in an interactive authorization. A presentation requires the role ' +
        '`presentation:manage` or `presentation:request`. With any step, the credential is issued ' +
        'only in this way: not by pre-authorized code, pushed request or external server',
    ),
  embeddedDisclosurePolicy: DisclosurePolicy.nullish().describe(
    '`disclosure_policy` of the metadata: the relying parties that wallets may present it to; not enforced by the service',
  ),
  disclosureFrame: jsonObject('a disclosure frame')
    .nullish()
    .describe(
      'dc+sd-jwt: claims that holders may withhold. `_sd` lists properties of an object or positions of an array; other names and positions contain ' +
        'to frames below; `_sd_decoy` is a number of decoy digests. Without a frame all claims are always visible. For example `{"_sd": ' +
        '["name", "address"], "address": {"_sd": ["street"]}, "degrees": {"_sd": [0, 1], "0": {"_sd": ["year"]}}}`',
    ),
  keyBinding: z.boolean().default(true).describe('Binds each credential to a key that the wallet proves; an mdoc is always bound'),
  proofTypes: z
    .array(z.enum(PROOF_TYPES))
    .min(1)
    .refine((types) => new Set(types).size === types.length, 'each once')
    .meta({ uniqueItems: true })
    .optional()
    .describe('at least one; default jwt, with keyAttestationsRequired both'),
  keyAttestationsRequired: KeyAttestationsRequired.nullish().describe(
    'Keys require an attestation of a provider on `walletProviderTrustLists`; without lists none is accepted. Default under the profile ' +
      '`eu`: any attestation',
  ),
  credentialReusePolicy: CredentialReusePolicy.nullish().describe(
    'How often wallets present one copy, and how many copies they store (ETSI TS 119 472-3 section 4.2.4.2); `credential_reuse_policy` of the ' +
      'metadata. Its batch sizes replace `batchSize` of the issuer. Required under the profile `eu`',
  ),
  keyChainId: Reference.nullish().describe('Key chain with the usage `signing` that signs it. Default: the oldest one with this usage'),
  statusManagement: z
    .boolean()
    .default(false)
    .describe('Gives each credential an entry in a status list; credentials without an entry cannot be revoked'),
  followWalletStatus: z
    .boolean()
    .nullish()
    .describe(
      'Credentials follow their wallet: they expire before the time until which its provider maintains the status of the wallet and of its ' +
        'keys, and with statusManagement they are revoked when it revokes one of them. Default: true if ' +
        'attestations of wallets or keys are required; see docs/reference/wallet-attestations.md',
    ),
  maxIssuances: z
    .number()
    .int()
    .min(1)
    .max(1000)
    .nullish()
    .describe(
      'Maximum number of credential requests that one session (offer) answers with it, renewals included, for all wallets ' +
        'together. Default: 100. Further requests are denied',
    ),
  subjectClaims: SubjectClaims.nullish().describe(
    'Claims that identify the subject of a credential, for `POST /credentials/revoke-by-subject`: paths such as ' +
      '`[["personal_administrative_number"]]`, for an mdoc namespace and element. A keyed hash of their values is stored while the ' +
      'credential is valid; credentials without these claims are not issued. Requires statusManagement',
  ),
  oneActiveSet: z
    .boolean()
    .nullish()
    .describe(
      'The credentials of a new request revoke those of earlier requests of the session, so that a holder has one active ' +
        'set. Requires statusManagement, and a separate offer for each holder: wallets that share an offer revoke the credentials of each other',
    ),
  lifeTime: z
    .number()
    .int()
    .min(60, 'at least 60 seconds')
    .max(3_155_760_000)
    .nullish()
    .describe(
      'seconds, from 60 to 100 years; without it an SD-JWT VC does not expire and an mdoc is valid for 90 days. It is never ' +
        'exceeded: the expiry is rounded down, to the day above two days and to the hour from two hours on; below, each copy ' +
        'expires earlier by a random part of up to a tenth',
    ),
  schema: jsonObject('a JSON Schema object')
    .nullish()
    .describe(
      'JSON Schema 2020-12 that validates claims of every source. dc+sd-jwt: a text with `contentEncoding` `base64` is issued as a data ' +
        'URI of its `contentMediaType`; absent claims of the schema and the frame are replaced by decoys. References to other documents are rejected, as are more than 500 subschemas, 2,000 keywords, 64 levels, or 100 patterns of 10,000 characters together',
    ),
})
  .superRefine((body, context) => {
    for (const { path, message } of findCredentialProblems(body)) context.addIssue({ code: 'custom', path: path.split('.'), message });
  })
  .meta({ id: 'CredentialConfigurationInput', allOf: [SD_JWT_ONLY_PROPERTIES] });
export type CredentialConfigurationBody = z.infer<typeof CredentialConfigurationBody>;

function findCredentialProblems(body: Parameters<typeof findConfigurationProblems>[0] & Statuses): readonly FieldError[] {
  const { config, subjectClaims, statusManagement } = body;
  const faults: FieldError[] = [];
  if (body.oneActiveSet && !statusManagement) {
    const message = 'requires statusManagement: a credential without a status cannot be revoked';
    faults.push({ path: 'oneActiveSet', message });
  }
  if (body.followWalletStatus && !statusManagement) {
    const message = 'requires statusManagement: a credential without a status cannot be revoked with its wallet';
    faults.push({ path: 'followWalletStatus', message });
  }
  return [
    ...faults,
    ...findConfigurationProblems(body),
    ...findReusePolicyProblems(body),
    ...findSubjectProblems(config, subjectClaims, statusManagement),
  ];
}

type Statuses = Parameters<typeof findReusePolicyProblems>[0] & {
  readonly oneActiveSet?: boolean | null | undefined;
  readonly followWalletStatus?: boolean | null | undefined;
  readonly subjectClaims?: SubjectClaims | null | undefined;
  readonly statusManagement: boolean;
};

export const CREDENTIAL_CHANGE_RULES: ChangeRules<typeof CredentialConfigurationBody> = {
  schema: CredentialConfigurationBody,
  crossFieldFaults: findCredentialProblems,
  related: [
    ['oneActiveSet', 'followWalletStatus', 'statusManagement'],
    ['subjectClaims', 'statusManagement', 'config'],
    ['keyBinding', 'proofTypes', 'keyAttestationsRequired', 'config'],
    ['credentialReusePolicy', 'config', 'keyBinding', 'lifeTime'],
    ['config', 'vct', 'claims', 'claimsWebhook', 'disclosureFrame', 'schema'],
  ],
};

/** Properties of a change; rules between these and the stored properties are applied after both are merged. */
export const CredentialConfigurationUpdate = updateOf(CredentialConfigurationBody);

/** One kind of credential that the tenant issues. */
export type CredentialConfiguration = CredentialConfigurationBody &
  Timed & {
    /** The hosted type metadata, byte for byte, because credentials carry its hash. */
    readonly frozenType?: string;
  };

/** The proof types that a wallet may choose from; HAIP 1.0 section 4.5.1 requires both when attestations are required. */
export function proofTypesOf({
  proofTypes,
  keyAttestationsRequired,
}: Pick<CredentialConfigurationBody, 'proofTypes' | 'keyAttestationsRequired'>): readonly ProofType[] {
  if (proofTypes !== undefined) return proofTypes;
  return keyAttestationsRequired === null || keyAttestationsRequired === undefined ? ['jwt'] : PROOF_TYPES;
}

/**
 * Fills properties that the configuration leaves open with the requirements of the tenant's profile.
 * @param configuration may be older than the profile.
 */
export function effectiveCredential<T extends Pick<CredentialConfigurationBody, 'keyBinding' | 'keyAttestationsRequired'>>(
  configuration: T,
  profile: Profile | null,
): T {
  const { keyBinding, keyAttestationsRequired } = configuration;
  // EUDI TS3 1.5 section 2.2: a device-bound credential needs attested keys
  if (!includesProfile(profile, 'eu') || !keyBinding || (keyAttestationsRequired ?? undefined) !== undefined) return configuration;
  return { ...configuration, keyAttestationsRequired: {} };
}
