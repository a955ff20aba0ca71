import {
  type DcApiVerification,
  isDcApi,
  type PostedVerification,
  type VerificationRequest,
} from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import {
  openDcApiData,
  openForm,
  openPlaintext,
  type ResponseForm,
} from '../../domain/verification/envelope.ts';
import { needs } from '../needs.ts';
import { ResponseIntake } from './response-intake.ts';
import type { ResponseReply } from './return-to.ts';

/** Takes in what a wallet posts to the response address (OpenID4VP 1.0 section 8.2). */
export class ReceiveResponse extends needs({ responseIntake: ResponseIntake }) {
  /** @throws Failure as `ResponseIntake.take`. */
  execute(tenantId: TenantId, publicId: PublicId, form: ResponseForm): Promise<ResponseReply> {
    return this.ports.responseIntake.take(tenantId, publicId, {
      open: (request) => openForm(form, posted(request)),
      openPlaintext: (plaintext, request) => openPlaintext(plaintext, posted(request)),
    });
  }
}

/** @throws Failure `not_found`: a request of a page has no such address. */
function posted(request: VerificationRequest): PostedVerification {
  if (isDcApi(request)) throw new Failure('not_found', 'unknown address');
  return request;
}

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
