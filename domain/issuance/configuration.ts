import { z } from 'zod';
import type { JsonObject } from '../shared/json.ts';
import { WebhookConfig } from '../webhooks/webhook.ts';
import { configurationFaults } from './configuration-rules.ts';
import { CredentialConfig } from './credential-config.ts';
import { DisclosurePolicy } from './disclosure-policy.ts';
import { DisplayText as Text } from './display.ts';
import { InteractiveAction } from './interactive-action.ts';

/** W3C Subresource Integrity, as SD-JWT VC section 6 uses it. */
const Integrity = z
  .string()
  .regex(/^sha(256|384|512)-[A-Za-z0-9+/]{43,86}={0,2}$/, 'a hash such as sha256-…, in base64');

const VctObject = z
  .looseObject({
    vct: z.string().min(1).max(2048).optional(),
    name: Text.optional(),
    description: z.string().max(5000).optional(),
    extends: z.string().max(2048).optional(),
    'extends#integrity': Integrity.optional(),
    schema_uri: z.string().max(2048).optional(),
    'schema_uri#integrity': Integrity.optional(),
    display: z.array(z.record(z.string(), z.json())).max(50).optional(),
    claims: z.array(z.record(z.string(), z.json())).max(500).optional(),
  })
  .meta({ id: 'TypeMetadata' });

/** OpenID4VCI 1.0 section 12.2.4: accepted values; an empty object takes any attestation. */
const KeyAttestationsRequired = z.strictObject({
  key_storage: z.array(z.string().min(1).max(500)).min(1).max(20).optional(),
  user_authentication: z.array(z.string().min(1).max(500)).min(1).max(20).optional(),
});

const PROOF_TYPES = ['jwt', 'attestation'] as const;
export type ProofType = (typeof PROOF_TYPES)[number];

const ConfigurationId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/, 'letters, digits and . _ ~ -, at most 128');

const jsonObject = (what: string) =>
  z.record(z.string(), z.json(), what).transform((value) => value as JsonObject);

export const CredentialConfigurationBody = z
  .object({
    id: ConfigurationId,
    config: CredentialConfig,
    description: z.string().max(1000).nullable().optional(),
    vct: z
      .union([z.string().min(1).max(2048), VctObject])
      .nullable()
      .optional()
      .describe(
        'dc+sd-jwt: the type, or its metadata, which the service hosts when they name no type. Credentials carry the ' +
          'hash of the hosted document, which also says display, claims, description and frame of the configuration: ' +
          'to change those after credentials were issued, make a new configuration, or wallets refuse the changed ' +
          'document for the older credentials',
      ),
    claims: jsonObject('an object of claims').nullable().optional(),
    claimsWebhook: WebhookConfig.nullable().optional(),
    notificationWebhook: WebhookConfig.nullable().optional(),
    iaeActions: z.array(InteractiveAction).max(10).nullable().optional(),
    embeddedDisclosurePolicy: DisclosurePolicy.nullable().optional(),
    disclosureFrame: jsonObject('a disclosure frame').nullable().optional(),
    keyBinding: z.boolean().default(true),
    proofTypes: z
      .array(z.enum(PROOF_TYPES))
      .min(1)
      .refine((types) => new Set(types).size === types.length, 'each once')
      .optional()
      .describe('default jwt; with keyAttestationsRequired both'),
    keyAttestationsRequired: KeyAttestationsRequired.nullable().optional(),
    keyChainId: z.string().min(1).max(128).nullable().optional(),
    statusManagement: z.boolean().default(false),
    lifeTime: z
      .number()
      .int()
      .min(60, 'at least 60 seconds')
      .max(3_155_760_000)
      .nullable()
      .optional()
      .describe('seconds; without it an SD-JWT VC does not expire and an mdoc lives 90 days'),
    schema: jsonObject('a JSON Schema object').nullable().optional(),
  })
  .superRefine((body, context) => {
    for (const { path, message } of configurationFaults(body)) {
      context.addIssue({ code: 'custom', path: path.split('.'), message });
    }
  })
  .meta({ id: 'CredentialConfigurationInput' });
export type CredentialConfigurationBody = z.infer<typeof CredentialConfigurationBody>;

/** One kind of credential that the tenant issues. */
export type CredentialConfiguration = CredentialConfigurationBody & {
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

export { ConfigurationId };

/** The proofs that a wallet may choose from; HAIP 1.0 section 4.5.1 wants both where attestations are asked for. */
export function proofTypesOf({
  proofTypes,
  keyAttestationsRequired,
}: Pick<CredentialConfigurationBody, 'proofTypes' | 'keyAttestationsRequired'>): readonly ProofType[] {
  if (proofTypes !== undefined) return proofTypes;
  return keyAttestationsRequired === null || keyAttestationsRequired === undefined ? ['jwt'] : PROOF_TYPES;
}
