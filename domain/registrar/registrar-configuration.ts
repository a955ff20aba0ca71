import { object, strictObject, z } from 'zod';
import { CertificatePem } from '../formats/der/certificate-pem.ts';
import { textUpTo } from '../shared/bounds.ts';
import { defined } from '../shared/defined.ts';
import { invalidInput } from '../shared/failure.ts';
import type { Timed } from '../shared/resource.ts';
import { updateOf } from '../shared/update-of.ts';
import { ContactUri, IssuerAddress } from '../shared/web-address.ts';
import { Intermediary, Purposes, WebPage } from './registration-certificate-request.ts';

const Name = textUpTo(500);
const Secret = textUpTo(4096);

/** The login of a tenant at its registrar (OAuth 2.0 password grant, RFC 6749 section 4.3). */
export const RegistrarConfigurationBody = object({
  registrarUrl: IssuerAddress.describe('Base of the API of the registrar, without query and fragment'),
  oidcUrl: IssuerAddress.describe('OpenID provider of the registrar, found by OpenID Connect Discovery'),
  clientId: Name.describe('Client of the service at the OpenID provider'),
  clientSecret: Secret.describe('Secret of a confidential client; never shown again').nullish(),
  username: Name.describe('Account at the registrar'),
  password: Secret.describe('Password of the account; sealed at rest and never shown again'),
  registrationCertificateAnchors: z
    .array(CertificatePem)
    .max(20)
    .describe(
      'PEM; allowed signers of registration certificates: CAs, or the signers. Without any, a certificate only has to ' +
        'be consistent, regardless of its signer',
    )
    .nullish(),
  registrationCertificateDefaults: strictObject({
    privacy_policy: WebPage.optional(),
    support_uri: ContactUri.optional(),
    purpose: Purposes.optional(),
    intermediary: Intermediary.optional(),
  })
    .describe('Default properties of requests for registration certificates')
    .nullish(),
}).meta({ id: 'RegistrarConfigurationInput' });
export type RegistrarConfigurationBody = z.infer<typeof RegistrarConfigurationBody>;

/** Properties replace those of the stored configuration; null resets an optional one. */
export const RegistrarConfigurationUpdate = updateOf(RegistrarConfigurationBody).meta({ id: 'RegistrarConfigurationUpdate' });
export type RegistrarConfigurationUpdate = z.infer<typeof RegistrarConfigurationUpdate>;

/** A tenant has at most one. */
export type RegistrarConfiguration = RegistrarConfigurationBody & Timed & { readonly id: 'default' };

/** @param previous the configuration that is replaced, if any. */
export function newRegistrarConfiguration(
  body: RegistrarConfigurationBody,
  previous: RegistrarConfiguration | undefined,
  now: Date,
): RegistrarConfiguration {
  const presentEntries = Object.entries(body).filter(([, value]) => value !== null && value !== undefined);
  return {
    ...(Object.fromEntries(presentEntries) as RegistrarConfigurationBody),
    id: 'default',
    createdAt: previous?.createdAt ?? now,
    updatedAt: now,
  };
}

/**
 * A stored secret is retained only for the same destination: a change of the address or the account requires the secret.
 * @throws Failure `invalid_input` when a secret must be given again.
 */
export function mergeRegistrarConfiguration(
  { id: _id, createdAt: _created, updatedAt: _updated, ...storedConfiguration }: RegistrarConfiguration,
  changes: RegistrarConfigurationUpdate,
): RegistrarConfigurationBody {
  const isChanged = (...names: (keyof RegistrarConfigurationUpdate)[]) =>
    names.some((name) => changes[name] !== undefined && changes[name] !== storedConfiguration[name]);
  if (changes.password === undefined && isChanged('registrarUrl', 'oidcUrl', 'username')) {
    throw invalidInput('password', 'send the password: the account or an address changed');
  }
  const keepsSecret = typeof storedConfiguration.clientSecret === 'string' && changes.clientSecret === undefined;
  if (keepsSecret && isChanged('oidcUrl', 'clientId')) {
    throw invalidInput('clientSecret', 'send the secret, or null: the client or the provider changed');
  }
  return { ...storedConfiguration, ...defined(changes) } as RegistrarConfigurationBody;
}
