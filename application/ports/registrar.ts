import type {
  AccessCertificateRequest,
  IssuedAccessCertificate,
  IssuedRegistrationCertificate,
  RelyingParty,
} from '../../domain/registrar/registrar-api.ts';
import type { RegistrarConfigurationBody } from '../../domain/registrar/registrar-configuration.ts';
import type { CompleteRegistrationBody } from '../../domain/registrar/registration-certificate-request.ts';
import type { TenantId } from '../../domain/shared/ids.ts';

/** Reasons why a registrar did not carry out a request. */
export type RegistrarFault =
  /** The OpenID provider rejects the account or the client. */
  | 'login_refused'
  /** The configured address is not that of a usable OpenID provider. */
  | 'bad_provider'
  /** The registrar rejects the request or the account. */
  | 'refused'
  /** The answer is not that of a registrar. */
  | 'bad_answer'
  /** The registrar does not answer, or answers that it is unavailable. */
  | 'unavailable';

export class RegistrarError extends Error {
  readonly fault: RegistrarFault;

  /** @param message for the operator. Never contains a secret, a token or text of the registrar. */
  constructor(fault: RegistrarFault, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = 'RegistrarError';
    this.fault = fault;
  }
}

/** An account at a registrar. Tenants never share a login, not even with equal settings. */
export type RegistrarAccount = { readonly tenantId: TenantId; readonly configuration: RegistrarConfigurationBody };

/**
 * The registrar of a tenant, which registers relying parties and what they may request. Logs in on demand and caches the login
 * until shortly before it expires.
 *
 * Each call throws RegistrarError.
 */
export abstract class Registrar {
  /** Logs in without the cache, to test the settings. */
  abstract logIn(account: RegistrarAccount): Promise<void>;
  abstract relyingParties(account: RegistrarAccount): Promise<readonly RelyingParty[]>;
  abstract issueAccessCertificate(account: RegistrarAccount, request: AccessCertificateRequest): Promise<IssuedAccessCertificate>;
  abstract issueRegistrationCertificate(
    account: RegistrarAccount,
    request: CompleteRegistrationBody & { readonly rpId: string },
  ): Promise<IssuedRegistrationCertificate>;
  /** @returns undefined for an id that the registrar does not know. */
  abstract findRegistrationCertificate(account: RegistrarAccount, id: string): Promise<IssuedRegistrationCertificate | undefined>;
}
