import { RegistrationCertificateRefusal } from '../../domain/registrar/registration-certificate.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import { RegistrarError } from '../ports/registrar.ts';

const RETRY_SECONDS = 15;

/**
 * Maps a fault of the registrar, or an unusable certificate, to the failure for the caller.
 * @param path of the rejected property in the caller's document.
 */
export function registrarFailure(error: unknown, path: string): unknown {
  if (error instanceof RegistrationCertificateRefusal) {
    const message = `The registration certificate cannot be used: ${error.message}.`;
    return error.isTemporary ? unavailable(message, error) : invalidInput(path, message);
  }
  if (!(error instanceof RegistrarError)) return error;
  return error.fault === 'refused' ? invalidInput(path, error.message) : unavailable(error.message, error);
}

/** Like `registrarFailure`, for a test of the login itself. */
export function loginFailure(error: unknown): unknown {
  if (!(error instanceof RegistrarError)) return error;
  if (error.fault === 'login_refused') return invalidInput('password', error.message);
  if (error.fault === 'bad_provider') return invalidInput('oidcUrl', error.message);
  return unavailable(error.message, error);
}

function unavailable(message: string, cause: Error): Failure {
  return new Failure('unavailable', { message, retryAfterSeconds: RETRY_SECONDS }, { cause });
}
