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
import { UnreadResponses } from './unread-responses.ts';

const PORTS = { responseIntake: ResponseIntake, unreadResponses: UnreadResponses };

/** Takes in what a wallet posts to the response address (OpenID4VP 1.0 section 8.2). */
export class ReceiveResponse extends needs(PORTS) {
  /**
   * @param requestId of the HTTP request, for the session and the log.
   * @throws Failure as `ResponseIntake.take`; what leaves the session open is recorded in its `attempts`.
   */
  async execute(
    tenantId: TenantId,
    publicId: PublicId,
    form: ResponseForm,
    requestId?: string,
  ): Promise<ResponseReply> {
    const { responseIntake, unreadResponses } = this.ports;
    try {
      return await responseIntake.take(tenantId, publicId, {
        open: (request) => openForm(form, posted(request)),
        openPlaintext: (plaintext, request, outerState) =>
          openPlaintext(plaintext, posted(request), outerState),
      });
    } catch (error) {
      await unreadResponses.note(tenantId, publicId, requestId, error);
      throw error;
    }
  }

  /** Records a body that could not be read at all. */
  unread(tenantId: TenantId, publicId: PublicId, requestId: string, error: unknown): Promise<void> {
    return this.ports.unreadResponses.note(tenantId, publicId, requestId, error);
  }
}

/** @throws Failure `not_found`: a request of a page has no such address. */
function posted(request: VerificationRequest): PostedVerification {
  if (isDcApi(request)) throw new Failure('not_found', 'unknown address');
  return request;
}

/** Takes in what a page got from the Digital Credentials API (OpenID4VP 1.0 appendix A.4). */
export class ReceiveDcApiResponse extends needs(PORTS) {
  /**
   * @param data of the credential object. @param requestId of the HTTP request, for the session and the log.
   * @throws Failure as `ResponseIntake.take`; what leaves the session open is recorded in its `attempts`.
   */
  async execute(tenantId: TenantId, publicId: PublicId, data: JsonObject, requestId?: string): Promise<void> {
    const { responseIntake, unreadResponses } = this.ports;
    try {
      await responseIntake.take(tenantId, publicId, {
        open: (request) => openDcApiData(data, ofPage(request)),
        openPlaintext: (plaintext, request) => {
          ofPage(request);
          return openPlaintext(plaintext);
        },
      });
    } catch (error) {
      await unreadResponses.note(tenantId, publicId, requestId, error);
      throw error;
    }
  }

  /** Records a body that could not be read at all. */
  unread(tenantId: TenantId, publicId: PublicId, requestId: string, error: unknown): Promise<void> {
    return this.ports.unreadResponses.note(tenantId, publicId, requestId, error);
  }
}

/** @throws Failure `not_found`: a request of a wallet has no such address. */
function ofPage(request: VerificationRequest): DcApiVerification {
  if (!isDcApi(request)) throw new Failure('not_found', 'unknown address');
  return request;
}
