import { z } from 'zod';
import type { JsonObject } from '../shared/json.ts';
import { WebhookConfig } from '../webhooks/webhook.ts';
import { DisclosurePolicy } from './disclosure-policy.ts';
import { Locale, Logo, DisplayText as Text } from './display.ts';
import { InteractiveAction } from './interactive-action.ts';

const Color = z.string().regex(/^#(?:[0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$/, 'a CSS hex colour');
/** Claims path pointer (OpenID4VCI 1.0 appendix C). */
const ClaimPath = z
  .array(z.union([z.string().min(1).max(200), z.number().int().min(0), z.null()]))
  .min(1)
  .max(32);

/** OpenID4VCI 1.0 appendix B.2: how one claim is shown. */
const ClaimDescription = z.object({
  path: ClaimPath,
  mandatory: z.boolean().optional(),
  display: z
    .array(z.object({ name: Text, locale: Locale.optional() }))
    .max(50)
    .optional(),
});

const CredentialDisplay = z.object({
  name: Text.min(1),
  locale: Locale.optional(),
  description: Text.optional(),
  background_color: Color.optional(),
  text_color: Color.optional(),
  background_image: z.object({ uri: z.string().min(1).max(100_000) }).optional(),
  logo: Logo.optional(),
});

/** OAuth scope-token (RFC 6749 section 3.3). */
const Scope = z
  .string()
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'a scope without spaces, quotes or backslashes');

const ElementName = z.string().min(1).max(200);
const Namespace = z.string().min(1).max(500);

export const CREDENTIAL_FORMATS = ['dc+sd-jwt', 'mso_mdoc'] as const;

export const CredentialConfig = z
  .object({
    format: z.enum(CREDENTIAL_FORMATS),
    display: z.array(CredentialDisplay).min(1).max(50),
    scope: Scope.optional(),
    claims: z.array(ClaimDescription).max(500).optional(),
    docType: Namespace.optional().describe('mso_mdoc: the document type'),
    namespace: Namespace.optional().describe('mso_mdoc: where claims without a namespace belong'),
    claimsByNamespace: z
      .record(Namespace, z.record(ElementName, z.json()))
      .optional()
      .describe('mso_mdoc: elements that every document has, by namespace'),
  })
  .superRefine((config, context) => {
    const isMdoc = config.format === 'mso_mdoc';
    if (isMdoc && config.docType === undefined) {
      context.addIssue({ code: 'custom', path: ['docType'], message: 'mso_mdoc needs a document type' });
    }
    for (const name of ['docType', 'namespace', 'claimsByNamespace'] as const) {
      if (isMdoc || config[name] === undefined) continue;
      context.addIssue({ code: 'custom', path: [name], message: 'belongs to mso_mdoc' });
    }
    for (const message of contradictions(config.claims ?? [])) {
      context.addIssue({ code: 'custom', path: ['claims', message.index, 'path'], message: message.text });
    }
  })
  .meta({ id: 'CredentialConfig' });

/** OpenID4VCI 1.0 appendix B.3: a claim described twice, or one array by `null` and by index, is invalid. */
function contradictions(claims: readonly { path: readonly (string | number | null)[] }[]) {
  const seen = new Map<string, string>();
  const faults: { index: number; text: string }[] = [];
  claims.forEach(({ path }, index) => {
    const key = JSON.stringify(path);
    if (seen.has(key)) faults.push({ index, text: 'this claim is described twice' });
    seen.set(key, key);
    path.forEach((component, depth) => {
      const kind = component === null ? 'all' : typeof component === 'number' ? 'index' : 'member';
      const place = `at ${JSON.stringify(path.slice(0, depth).map((part) => (typeof part === 'number' ? null : part)))}`;
      const before = seen.get(place);
      if (before !== undefined && before !== kind) {
        faults.push({ index, text: 'two paths treat the same place as different kinds of value' });
      }
      seen.set(place, kind);
    });
  });
  return faults;
}

const VctObject = z
  .looseObject({
    vct: z.string().min(1).max(2048).optional(),
    name: Text.optional(),
    description: z.string().max(5000).optional(),
    extends: z.string().max(2048).optional(),
    display: z.array(z.record(z.string(), z.unknown())).max(50).optional(),
    claims: z.array(z.record(z.string(), z.unknown())).max(500).optional(),
  })
  .meta({ id: 'TypeMetadata' });

/** OpenID4VCI 1.0 section 12.2.4: accepted values; an empty object takes any attestation. */
const KeyAttestationsRequired = z.strictObject({
  key_storage: z.array(z.string().min(1).max(500)).min(1).max(20).optional(),
  user_authentication: z.array(z.string().min(1).max(500)).min(1).max(20).optional(),
});

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
      .optional(),
    claims: jsonObject('an object of claims').nullable().optional(),
    claimsWebhook: WebhookConfig.nullable().optional(),
    notificationWebhook: WebhookConfig.nullable().optional(),
    iaeActions: z.array(InteractiveAction).max(10).nullable().optional(),
    embeddedDisclosurePolicy: DisclosurePolicy.nullable().optional(),
    disclosureFrame: jsonObject('a disclosure frame').nullable().optional(),
    keyBinding: z.boolean().default(true),
    proofTypes: z
      .array(z.enum(['jwt', 'attestation']))
      .min(1)
      .refine((types) => new Set(types).size === types.length, 'each once')
      .optional()
      .describe('default jwt; with keyAttestationsRequired both'),
    keyAttestationsRequired: KeyAttestationsRequired.nullable().optional(),
    keyChainId: z.string().min(1).max(128).nullable().optional(),
    statusManagement: z.boolean().default(false),
    lifeTime: z.number().int().min(60, 'at least 60 seconds').max(3_155_760_000).nullable().optional(),
    schema: jsonObject('a JSON Schema object').nullable().optional(),
  })
  .meta({ id: 'CredentialConfigurationInput' });
export type CredentialConfigurationBody = z.infer<typeof CredentialConfigurationBody>;

/** One kind of credential that the tenant issues. */
export type CredentialConfiguration = CredentialConfigurationBody & {
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

export { ConfigurationId };
