import { type DcApiVerification, isDcApi, type VerificationRequest } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { openDcApiData, openPlaintext } from '../../domain/verification/envelope.ts';
import { needs } from '../needs.ts';
import { ResponseIntake } from './response-intake.ts';

/** Takes in what a page got from the Digital Credentials API (OpenID4VP 1.0 appendix A.4). */
export class ReceiveDcApiResponse extends needs({ responseIntake: ResponseIntake }) {
  /**
   * @param data of the credential object.
   * @throws Failure as `ResponseIntake.take`.
   */
  async execute(tenantId: TenantId, publicId: PublicId, data: JsonObject): Promise<void> {
    await this.ports.responseIntake.take(tenantId, publicId, {
      open: (request) => openDcApiData(data, ofPage(request)),
      openPlaintext: (plaintext, request) => {
        ofPage(request);
        return openPlaintext(plaintext);
      },
    });
  }
}

/** @throws Failure `not_found`: a request of a wallet has no such address. */
function ofPage(request: VerificationRequest): DcApiVerification {
  if (!isDcApi(request)) throw new Failure('not_found', 'unknown address');
  return request;
}
