import { parseResponseEncryption } from '../../domain/issuance/encryption.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { type JsonObject, MAX_UNTRUSTED_PROPERTIES, parseJsonObject } from '../../domain/shared/json.ts';
import { describeJsonProblem } from '../../domain/shared/json-fault.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { needs } from '../needs.ts';
import { Encryption } from '../ports/encryption.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** A request to a credential endpoint. */
export type IncomingMessage = { readonly contentType: string | undefined; readonly body: Buffer };

export type OpenedMessage = {
  readonly body: JsonObject;
  /** True if the request itself was encrypted. */
  readonly encrypted: boolean;
};

export type SealedAnswer = {
  /** JSON, or a JWE in compact form (OpenID4VCI 1.0 section 10). */
  readonly text: string;
  readonly contentType: 'application/json' | 'application/jwt';
};

/** Encodes a response in the form that the request requires. */
export type Seal = (answer: JsonObject) => Promise<SealedAnswer>;

export const sealPlain: Seal = async (answer) => ({ text: JSON.stringify(answer), contentType: 'application/json' });

/** Decrypts requests to the credential and deferred credential endpoints and encrypts the responses (OpenID4VCI 1.0 section 10). */
export class CredentialMessages extends needs({ encryption: Encryption }) {
  /** @throws Failure `invalid_credential_request`, `invalid_encryption_parameters`. */
  async open(tenant: TenantConfiguration, { contentType, body }: IncomingMessage): Promise<OpenedMessage> {
    const { requestEncryption } = await tenant.issuance();
    const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
    if (type === 'application/jwt' && requestEncryption !== 'off') {
      return { body: parse(await this.#decrypt(tenant, body)), encrypted: true };
    }
    if (type !== 'application/json') {
      const types = requestEncryption === 'off' ? 'application/json' : 'application/json or application/jwt';
      throw new Failure('invalid_credential_request', `send the body as ${types}`);
    }
    // OpenID4VCI 1.0 section 10
    if (requestEncryption === 'required') throw new Failure('invalid_encryption_parameters', 'this issuer only accepts encrypted requests');
    return { body: parse(decodeUtf8(body) ?? ''), encrypted: false };
  }

  /**
   * @returns the encoder for the response form that the request requires.
   * @throws Failure `invalid_encryption_parameters`.
   */
  async responder(tenant: TenantConfiguration, { body, encrypted }: OpenedMessage): Promise<Seal> {
    const { responseEncryption: use } = await tenant.issuance();
    const responseEncryption = parseResponseEncryption(body, { use, encrypted });
    if (responseEncryption === undefined) return sealPlain;
    const { recipient, enc, zip } = responseEncryption;
    return async (answer) => ({
      text: await this.ports.encryption.encrypt(JSON.stringify(answer), recipient, { enc, zip }),
      contentType: 'application/jwt',
    });
  }

  async #decrypt(tenant: TenantConfiguration, body: Buffer): Promise<string> {
    const { encryption } = this.ports;
    const jwe = body.toString('latin1');
    for (const key of encryption.requestKeys(tenant.tenantId)) {
      const plaintext = await encryption.decrypt(jwe, key, { inflate: true });
      if (plaintext !== undefined) return plaintext;
    }
    throw new Failure('invalid_encryption_parameters', 'the request cannot be decrypted; use key, alg, enc and zip of the metadata');
  }
}

function parse(text: string): JsonObject {
  const body = parseJsonObject(text, undefined, MAX_UNTRUSTED_PROPERTIES);
  if (body !== undefined) return body;
  throw new Failure('invalid_credential_request', `the body ${describeJsonProblem(text, MAX_UNTRUSTED_PROPERTIES)}`);
}
