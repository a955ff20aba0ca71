import { parseResponseEncryption } from '../../domain/issuance/encryption.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { type JsonObject, MAX_STRANGER_MEMBERS, parseJsonObject } from '../../domain/shared/json.ts';
import { describeJsonProblem } from '../../domain/shared/json-fault.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { needs } from '../needs.ts';
import { Encryption } from '../ports/encryption.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** What came to a credential endpoint. */
export type IncomingMessage = { readonly contentType: string | undefined; readonly body: Buffer };

export type OpenedMessage = {
  readonly body: JsonObject;
  /** Whether the request itself came encrypted. */
  readonly encrypted: boolean;
};

export type SealedAnswer = {
  /** JSON, or a JWE in compact form (OpenID4VCI 1.0 section 10). */
  readonly text: string;
  readonly contentType: 'application/json' | 'application/jwt';
};

/** Puts an answer into the form that the request asks for. */
export type Seal = (answer: JsonObject) => Promise<SealedAnswer>;

export const sealPlain: Seal = async (answer) => ({ text: JSON.stringify(answer), contentType: 'application/json' });

/** Opens requests to the credential and deferred credential endpoints and seals the answers (OpenID4VCI 1.0 section 10). */
export class CredentialMessages extends needs({ encryption: Encryption }) {
  /** @throws Failure `invalid_credential_request`, `invalid_encryption_parameters`. */
  async open(configured: TenantConfiguration, { contentType, body }: IncomingMessage): Promise<OpenedMessage> {
    const { requestEncryption } = await configured.issuance();
    const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
    if (type === 'application/jwt' && requestEncryption !== 'off') {
      return { body: parse(await this.#decrypt(configured, body)), encrypted: true };
    }
    if (type !== 'application/json') {
      const types = requestEncryption === 'off' ? 'application/json' : 'application/json or application/jwt';
      throw new Failure('invalid_credential_request', `send the body as ${types}`);
    }
    // OpenID4VCI 1.0 section 10
    if (requestEncryption === 'required') throw new Failure('invalid_encryption_parameters', 'this issuer takes encrypted requests only');
    return { body: parse(decodeUtf8(body) ?? ''), encrypted: false };
  }

  /**
   * @returns what puts an answer into the form that the request asks for.
   * @throws Failure `invalid_encryption_parameters`.
   */
  async responder(configured: TenantConfiguration, { body, encrypted }: OpenedMessage): Promise<Seal> {
    const { responseEncryption: use } = await configured.issuance();
    const wanted = parseResponseEncryption(body, { use, encrypted });
    if (wanted === undefined) return sealPlain;
    const { recipient, enc, zip } = wanted;
    return async (answer) => ({
      text: await this.ports.encryption.encrypt(JSON.stringify(answer), recipient, { enc, zip }),
      contentType: 'application/jwt',
    });
  }

  async #decrypt(configured: TenantConfiguration, body: Buffer): Promise<string> {
    const { encryption } = this.ports;
    const jwe = body.toString('latin1');
    for (const key of encryption.requestKeys(configured.tenantId)) {
      const plaintext = await encryption.decrypt(jwe, key, { inflate: true });
      if (plaintext !== undefined) return plaintext;
    }
    throw new Failure('invalid_encryption_parameters', 'the request cannot be decrypted; use key, alg, enc and zip of the metadata');
  }
}

function parse(text: string): JsonObject {
  const parsed = parseJsonObject(text, undefined, MAX_STRANGER_MEMBERS);
  if (parsed !== undefined) return parsed;
  throw new Failure('invalid_credential_request', `the body ${describeJsonProblem(text, MAX_STRANGER_MEMBERS)}`);
}
