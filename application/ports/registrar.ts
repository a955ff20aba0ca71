import type {
  AccessCertificateRequest,
  IssuedAccessCertificate,
  IssuedRegistrationCertificate,
  RelyingParty,
} from '../../domain/registrar/registrar-api.ts';
import type { RegistrarConfigurationBody } from '../../domain/registrar/registrar-configuration.ts';
import type { CompleteRegistrationBody } from '../../domain/registrar/registration-certificate-request.ts';
import type { TenantId } from '../../domain/shared/ids.ts';

/** Why a registrar did not do what it was asked. */
export type RegistrarFault =
  /** The OpenID provider refuses the account or the client. */
  | 'login_refused'
  /** The address of the OpenID provider leads to none that can be used. */
  | 'bad_provider'
  /** The registrar refuses what was asked, or our account asked it. */
  | 'refused'
  /** Something answers that is no registrar. */
  | 'bad_answer'
  /** Nobody answers, or says that it cannot at present. */
  | 'unavailable';

export class RegistrarError extends Error {
  readonly fault: RegistrarFault;

  /** @param message for the operator. Never a secret, a token or text that the other side wrote. */
  constructor(fault: RegistrarFault, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.name = 'RegistrarError';
    this.fault = fault;
  }
}

/** Whose account is used. No login is shared by two tenants, not even by those with equal settings. */
export type RegistrarAccount = { readonly tenantId: TenantId; readonly configuration: RegistrarConfigurationBody };

/**
 * The registrar of a tenant, which says who may ask wallets for what. Logs in by itself and keeps the login until shortly before it ends.
 *
 * Each call throws RegistrarError.
 */
export abstract class Registrar {
  /** Logs in anew, whatever is remembered: whether these settings are good. */
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
