import { jsonOfBase64 } from '../../../wallet/src/core/formats/base64.ts';
import type { Family } from '../core/case.ts';
import { newKey } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { FetchedRequest } from '../targets/requests.ts';
import { encryptResponse, isEncrypted, queryOf, type Verifier } from '../targets/verifier.ts';
import { answerWith, presentsCard } from './presenting.ts';

const REFUSED = { status: [400, 404, 410, 413, 415] } as const;
const correctVpToken = async (verifier: Verifier, request: FetchedRequest) => ({ [queryOf(request).id]: [await verifier.card(request)] });
const completeResponse = async (verifier: Verifier, request: FetchedRequest) => ({
  vp_token: await correctVpToken(verifier, request),
  state: request.payload.state,
});
const requireEncrypted = (request: FetchedRequest): FetchedRequest => {
  if (!isEncrypted(request)) throw new Skip('answers to this verifier are not encrypted');
  return request;
};

const jwe = (make: (request: FetchedRequest, content: object) => Promise<string>) =>
  answerWith(async (verifier, request) =>
    verifier.post(request, { response: await make(requireEncrypted(request), await completeResponse(verifier, request)) }),
  );
const parts = (change: (parts: string[]) => readonly string[]) =>
  jwe(async (request, content) => change((await encryptResponse(request, content)).split('.')).join('.'));
const flipped = (part = '') => {
  const bytes = Buffer.from(part, 'base64url');
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return bytes.toString('base64url');
};

export const responseEncryption: Family<Verifier> = {
  id: 'response-encryption',
  title: 'Encrypted answers of wallets',
  async control(verifier) {
    requireEncrypted(await verifier.ask());
    await presentsCard(verifier);
  },
  cases: table<Verifier>(
    { section: 'OpenID4VP 1.0 section 8.3', why: 'an answer is encrypted to the key of this request, as was asked', safe: REFUSED },
    {
      'in the clear': answerWith(async (verifier, request) =>
        verifier.plain(requireEncrypted(request), await completeResponse(verifier, request)),
      ),
      'to the key of another request': answerWith(async (verifier, request) => {
        const response = await encryptResponse(await verifier.ask(), await completeResponse(verifier, requireEncrypted(request)));
        return verifier.post(request, { response });
      }),
      'to another key under the right name': jwe((request, content) =>
        encryptResponse(request, content, { jwk: { ...newKey().jwk, kid: request.payload.client_metadata.jwks.keys[0].kid } }),
      ),
      'to a key that is unknown': jwe((request, content) => encryptResponse(request, content, { header: { kid: 'unknown' } })),
      'by an enc that was not asked for': jwe((request, content) =>
        encryptResponse(request, content, { header: { enc: 'A128CBC-HS256' } }),
      ),
      'with key wrapping': jwe((request, content) => encryptResponse(request, content, { header: { alg: 'ECDH-ES+A128KW' } })),
      'with a changed ciphertext': parts(([a = '', b = '', c = '', d, e = '']) => [a, b, c, flipped(d), e]),
      'with a changed tag': parts(([a = '', b = '', c = '', d = '', e]) => [a, b, c, d, flipped(e)]),
      'with an extension that nobody knows': parts(([a = '', ...otherParts]) => [
        Buffer.from(JSON.stringify({ ...(jsonOfBase64(a) as object), crit: ['x'], x: 1 })).toString('base64url'),
        ...otherParts,
      ]),
      'only signed, by nobody': jwe(
        async (_, content) => `eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify(content)).toString('base64url')}.`,
      ),
      'with text inside that is no JSON': jwe((request) => encryptResponse(request, 'nonsense')),
      'with a list inside': jwe((request, content) => encryptResponse(request, [content])),
      'text that is no JWE': jwe(async () => 'a.b.c.d.e'),
    },
  ),
};
