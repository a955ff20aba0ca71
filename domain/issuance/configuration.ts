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
  credentials: listUpTo(DcqlObject, 100).describe('DCQL credential queries for what the relying party presents'),
  credential_sets: z.array(DcqlObject).max(100).optional().describe('DCQL credential sets over these'),
}).meta({ id: 'AttestationOfRelyingParty' });

/** Restricts the relying parties to which a wallet may show the credential; published in the issuer's metadata. */
const DisclosurePolicy = z
  .discriminatedUnion('policy', [
    strictObject({ policy: z.literal('none').describe('To anybody') }),
    strictObject({
      policy: z.literal('allowList').describe('To the relying parties that are named'),
      values: Names.describe('Relying parties, by the names that wallets find in their access certificates; at least one'),
    }),
    strictObject({
      policy: z.literal('rootOfTrust').describe('To relying parties whose certificates one of these vouches for'),
      values: z.union([Name, Names]).describe('Names of the authorities, at least one'),
    }),
    strictObject({
      policy: z.literal('attestationBased').describe('To relying parties that present an attestation'),
      values: listUpTo(Attestation, 100).describe('Any of these is enough'),
    }),
  ])
  .meta({ id: 'DisclosurePolicy' });

/** OpenID4VCI 1.0 section 12.2.4: accepted values; an empty object accepts any attestation. */
const KeyAttestationsRequired = strictObject({
  key_storage: listUpTo(textUpTo(500), 20)
    .optional()
    .describe('Accepted attack resistance of the key store, such as `iso_18045_high`, at least one; any unless stated'),
  user_authentication: listUpTo(textUpTo(500), 20)
    .optional()
    .describe('Accepted resistance of the user authentication that opens the key, at least one; any unless stated'),
  preferred_key_storage_status_period: z
    .number()
    .int()
    .min(0)
    .max(315_360_000)
    .optional()
    .describe(
      'Seconds for which wallet providers shall still keep the status of the attestation (TS3 1.5 section 2.4); for ' +
        'credentials that follow it, as long as they are to live. Whatever wallets like unless stated',
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
  config: CredentialConfig.describe('What wallets are told, and the format'),
  description: z.string().max(1000).nullish().describe('For administrators, and in the metadata of a hosted type'),
  vct: z
    .union([NameUri, TypeMetadataInput])
    .nullish()
    .describe(
      'dc+sd-jwt: the type, or its metadata, which the service hosts when they name no type. What the metadata say of ' +
        'claims (`mandatory`, `sd`) holds for every credential',
    ),
  vctIntegrity: z
    .boolean()
    .nullish()
    .describe(
      'Writes the hash of the hosted metadata into credentials (`vct#integrity`). The document is kept as it is at that moment: ' +
        'what it is made of (vct, config.display, config.claims, frame, description, names of claims and schema) cannot be changed, nor the ' +
        'configuration deleted, until this is set to false; leaving it out keeps it. Then wallets refuse a changed document for the credentials that are out',
    ),
  claims: jsonObject('an object of claims')
    .nullish()
    .describe(
      'Static claims, the same for everybody; used where neither the offer nor `claimsWebhook` says any. ' +
        'mso_mdoc: elements, flat or keyed by namespace',
    ),
  claimsWebhook: WebhookConfig.nullish().describe(
    'Called for the claims when a wallet requests the credential; see `claims` among the webhooks',
  ),
  notificationWebhook: WebhookConfig.nullish().describe(
    'Notified of the fate of a credential in the wallet, unless the offer has a `notifyWebhook`; see `notification` among the webhooks',
  ),
  iaeActions: z
    .array(InteractiveAction)
    .max(10)
    .nullish()
    .describe(
      'What the user does before, in this order, in an interactive authorization. Naming a presentation takes the role ' +
        '`presentation:manage` or `presentation:request`. With any, the credential is issued ' +
        'in no other way: not by pre-authorized code, pushed request or external server',
    ),
  embeddedDisclosurePolicy: DisclosurePolicy.nullish().describe(
    'Tells wallets, as `disclosure_policy` of the metadata, whom to show it to; not enforced here',
  ),
  disclosureFrame: jsonObject('a disclosure frame')
    .nullish()
    .describe(
      'dc+sd-jwt: claims that holders may withhold. `_sd` lists properties of an object or positions of an array; other names and positions lead ' +
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
    'Keys need an attestation of a provider on `walletProviderTrustLists`; without lists none is accepted. Under the profile ' +
      '`eu` any attestation unless stated',
  ),
  credentialReusePolicy: CredentialReusePolicy.nullish().describe(
    'How often wallets present one copy, and how many they hold (ETSI TS 119 472-3 section 4.2.4.2); `credential_reuse_policy` of the ' +
      'metadata. Its batch sizes count in place of `batchSize` of the issuer. Demanded under the profile `eu`',
  ),
  keyChainId: Reference.nullish().describe('Key chain with the usage `signing` that signs it; the oldest such one unless stated'),
  statusManagement: z.boolean().default(false).describe('Gives each credential an entry in a status list; without it none can be revoked'),
  followWalletStatus: z
    .boolean()
    .nullish()
    .describe(
      'Credentials end with their wallet: they expire before the time until which its provider keeps the status of the wallet and of its ' +
        'keys, and with statusManagement they are revoked when it revokes one of them. True unless stated where ' +
        'attestations of wallets or of keys are required; see docs/reference/wallet-attestations.md',
    ),
  maxIssuances: z
    .number()
    .int()
    .min(1)
    .max(1000)
    .nullish()
    .describe(
      'How many credential requests one session (offer) answers with it at most, renewals included, whichever wallet ' +
        'asks; 100 unless stated. Later ones are denied',
    ),
  subjectClaims: SubjectClaims.nullish().describe(
    'Claims that say whom a credential is about, for `POST /credentials/revoke-by-subject`: paths such as ' +
      '`[["personal_administrative_number"]]`, of an mdoc namespace and element. A keyed hash of their values is kept while the ' +
      'credential lives; claims without them are not issued. Needs statusManagement',
  ),
  oneActiveSet: z
    .boolean()
    .nullish()
    .describe(
      'Credentials of a new request of a session revoke those that it answered with before, so that a holder has one active ' +
        'set. Needs statusManagement, and an offer for each holder: wallets that share one take each other their credentials',
    ),
  lifeTime: z
    .number()
    .int()
    .min(60, 'at least 60 seconds')
    .max(3_155_760_000)
    .nullish()
    .describe(
      'seconds from 60 to 100 years; without it an SD-JWT VC does not expire and an mdoc lives 90 days. It is never ' +
        'exceeded: the end is rounded down, to the day above two days and to the hour from two hours on; below, each copy ' +
        'loses a random part of up to a tenth',
    ),
  schema: jsonObject('a JSON Schema object')
    .nullish()
    .describe(
      'JSON Schema 2020-12 that claims of every source have to fit. dc+sd-jwt: a text with `contentEncoding` `base64` is issued as a data ' +
        'URI of its `contentMediaType`; claims that it and the frame know leave a decoy where they are absent. References to other documents are refused, and so are more than 500 subschemas, 2,000 keywords, 64 levels, or 100 patterns of 10,000 characters together',
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
    const message = 'needs statusManagement: what has no status cannot be revoked';
    faults.push({ path: 'oneActiveSet', message });
  }
  if (body.followWalletStatus && !statusManagement) {
    const message = 'needs statusManagement: what has no status cannot be revoked with its wallet';
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
