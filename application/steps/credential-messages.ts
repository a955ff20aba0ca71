import { Failure } from '../../domain/shared/failure.ts';
import { type JsonObject, parseJsonObject } from '../../domain/shared/json.ts';
import type { TenantView } from './tenant-views.ts';

/** What came to a credential endpoint. */
export type IncomingMessage = { readonly contentType: string | undefined; readonly body: Buffer };

export type OpenedMessage = {
  readonly body: JsonObject;
  /** Whether the request itself came encrypted. */
  readonly encrypted: boolean;
};

export type SealedAnswer = {
  readonly text: string;
  readonly contentType: 'application/json' | 'application/jwt';
};

/** Opens requests to the credential and deferred credential endpoints and seals the answers (OpenID4VCI 1.0 section 10). */
export class CredentialMessages {
  /** @throws Failure `invalid_credential_request`, `invalid_encryption_parameters`. */
  async open(_view: TenantView, { contentType, body }: IncomingMessage): Promise<OpenedMessage> {
    const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
    if (type !== 'application/json') {
      throw new Failure('invalid_credential_request', 'send the body as application/json');
    }
    const parsed = parseJsonObject(body.toString('utf8'));
    if (parsed === undefined) {
      throw new Failure(
        'invalid_credential_request',
        'the body must be one JSON object without repeated members',
      );
    }
    return { body: parsed, encrypted: false };
  }

  /**
   * @returns what puts an answer into the form that the request asks for.
   * @throws Failure `invalid_encryption_parameters`.
   */
  async responder(
    _view: TenantView,
    { body }: OpenedMessage,
  ): Promise<(answer: JsonObject) => Promise<SealedAnswer>> {
    // OpenID4VCI 1.0 section 8.2: response encryption only inside an encrypted request
    if (body['credential_response_encryption'] !== undefined) {
      throw new Failure('invalid_encryption_parameters', 'this issuer offers no response encryption');
    }
    return async (answer) => ({ text: JSON.stringify(answer), contentType: 'application/json' });
  }
}
