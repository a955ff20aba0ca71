import { RegistrationCertificateRefusal } from '../../domain/registrar/registration-certificate.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { RegistrarError } from '../ports/registrar.ts';

/** When somebody who is told that the registrar cannot be reached may try again. */
const RETRY_SECONDS = 15;

/**
 * What a caller is told of a fault of the registrar, or of a certificate that cannot be used.
 * @param path of the member of the caller's document that is refused.
 */
export function registrarFailure(error: unknown, path: string): unknown {
  if (error instanceof RegistrationCertificateRefusal) {
    const message = `The registration certificate cannot be used: ${error.message}.`;
    return error.isTemporary ? unavailable(message, error) : invalidInput(path, message);
  }
  if (!(error instanceof RegistrarError)) return error;
  return error.fault === 'refused' ? invalidInput(path, error.message) : unavailable(error.message, error);
}

/** The same for the one who writes the login itself. */
export function loginFailure(error: unknown): unknown {
  if (!(error instanceof RegistrarError)) return error;
  if (error.fault === 'login_refused') return invalidInput('password', error.message);
  if (error.fault === 'bad_provider') return invalidInput('oidcUrl', error.message);
  return unavailable(error.message, error);
}

function unavailable(message: string, cause: Error): Failure {
  return new Failure('unavailable', { message, retryAfterSeconds: RETRY_SECONDS }, { cause });
}
