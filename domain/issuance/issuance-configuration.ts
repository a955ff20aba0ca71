import { z } from 'zod';
import type { JsonObject } from '../shared/json.ts';
import { DisplayInfo } from './display.ts';

const Address = z
  .string()
  .max(2048)
  .refine((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return url !== undefined && ['https:', 'http:'].includes(url.protocol) && url.username === '';
  }, 'an http or https address without credentials');
const KeyChainId = z.string().min(1).max(128);
const Seconds = z.number().int();
/** `off`: not offered. `optional`: the wallet decides. `required`: refused without. */
const Use = z.enum(['off', 'optional', 'required']);
/** PEM; a CA certificate, or a signer's own certificate as a pin. */
const Certificate = z.string().min(1).max(20_000);

/** A wallet that authenticates with a key of its own (RFC 7523 section 2.2) in place of an attestation. */
const WalletClient = z
  .strictObject({
    client_id: z.string().min(1).max(500),
    jwks: z
      .object({ keys: z.array(z.record(z.string(), z.json())).min(1).max(20) })
      .transform((value) => value as unknown as { keys: JsonObject[] })
      .optional(),
    jwks_uri: Address.optional(),
    redirect_uris: z.array(z.string().min(1).max(2048)).min(1).max(50).optional(),
  })
  .refine((client) => (client.jwks === undefined) !== (client.jwks_uri === undefined), {
    message: 'give either jwks or jwks_uri',
  })
  .meta({ id: 'WalletClient' });
export type WalletClient = z.infer<typeof WalletClient>;

/** An authorization server of ours that has users log in at another one. */
export const ChainedAsConfig = z
  .strictObject({
    enabled: z.boolean().default(true),
    upstream: z.strictObject({
      issuer: Address,
      clientId: z.string().min(1).max(500),
      clientSecret: z.string().min(1).max(4096).optional(),
      scopes: z.array(z.string().min(1).max(200)).min(1).max(50).default(['openid', 'profile']),
    }),
    token: z
      .strictObject({
        lifetimeSeconds: Seconds.min(60).max(86_400).default(3600),
        signingKeyId: KeyChainId.nullable().optional(),
      })
      .default({ lifetimeSeconds: 3600 }),
    requireDPoP: z.boolean().default(true),
  })
  .meta({ id: 'ChainedAsConfig' });
export type ChainedAsConfig = z.infer<typeof ChainedAsConfig>;

export const IssuanceConfigurationBody = z
  .object({
    display: z.array(DisplayInfo).min(1).max(50),
    signingKeyId: KeyChainId.nullable().optional(),
    batchSize: Seconds.min(0).max(100).default(1),
    dPopRequired: z.boolean().default(true),
    dPopNonce: Use.default('optional').describe('server nonces in DPoP proofs (RFC 9449 section 8)'),
    walletAttestationRequired: z.boolean().default(false),
    walletProviderTrustLists: z.array(Address).max(20).default([]),
    walletProviderTrustListCertificates: z
      .array(Certificate)
      .max(20)
      .default([])
      .describe('who may sign these lists; a list that none of them vouches for is not used'),
    attestationMaxAgeSeconds: Seconds.min(60).max(31_536_000).nullable().optional(),
    walletClients: z.array(WalletClient).max(200).default([]),
    builtInAs: z
      .strictObject({ walletInitiated: z.boolean().default(false) })
      .nullable()
      .optional(),
    authServers: z.array(Address).max(20).default([]),
    chainedAs: ChainedAsConfig.nullable().optional(),
    preferredAuthServer: z.string().min(1).max(2048).nullable().optional(),
    refreshTokenSeconds: Seconds.min(0)
      .max(31_536_000)
      .default(2_592_000)
      .describe('lifetime of refresh tokens; 0 issues none'),
    requestEncryption: Use.default('optional').describe('encrypted credential requests'),
    responseEncryption: Use.default('optional').describe('encrypted credential responses'),
  })
  .superRefine((body, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (new Set(body.display.map((entry) => entry.locale ?? '')).size !== body.display.length) {
      refuse('display', 'each locale stands at most once');
    }
    if (new Set(body.authServers).size !== body.authServers.length)
      refuse('authServers', 'an address stands twice');
    if (new Set(body.walletClients.map((client) => client.client_id)).size !== body.walletClients.length) {
      refuse('walletClients', 'a client_id stands twice');
    }
    // OpenID4VCI 1.0 section 8.2: a response is encrypted only for a request that was
    if (body.responseEncryption !== 'off' && body.requestEncryption === 'off') {
      refuse('responseEncryption', 'needs requestEncryption; switch both off');
    }
    if (body.responseEncryption === 'required' && body.requestEncryption !== 'required') {
      refuse('responseEncryption', 'can be required only when requestEncryption is');
    }
  })
  .meta({ id: 'IssuanceConfigurationInput' });
export type IssuanceConfigurationBody = z.infer<typeof IssuanceConfigurationBody>;

/** One per tenant; how it issues. */
export type IssuanceConfiguration = IssuanceConfigurationBody & {
  readonly id: 'default';
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** For a tenant that configured nothing. */
export function defaultIssuance(tenantName: string): IssuanceConfigurationBody {
  return IssuanceConfigurationBody.parse({ display: [{ name: tenantName, locale: 'en' }] });
}
