import { jsonOfBase64 } from '../../../wallet/src/core/formats/base64.ts';
import type { Family } from '../core/case.ts';
import { newKey } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Asked } from '../targets/requests.ts';
import { encryptResponse, isEncrypted, queryOf, type Verifier } from '../targets/verifier.ts';
import { answered, presentsCard } from './presenting.ts';

const REFUSED = { status: [400, 404, 410, 413, 415] } as const;
const right = async (verifier: Verifier, asked: Asked) => ({
  [queryOf(asked).id]: [await verifier.card(asked)],
});
const whole = async (verifier: Verifier, asked: Asked) => ({
  vp_token: await right(verifier, asked),
  state: asked.payload.state,
});
const encrypted = (asked: Asked): Asked => {
  if (!isEncrypted(asked)) throw new Skip('answers to this verifier are not encrypted');
  return asked;
};

const jwe = (make: (asked: Asked, content: object) => Promise<string>) =>
  answered(async (verifier, asked) => verifier.post(asked, { response: await make(encrypted(asked), await whole(verifier, asked)) }));
const parts = (change: (parts: string[]) => readonly string[]) =>
  jwe(async (asked, content) => change((await encryptResponse(asked, content)).split('.')).join('.'));
const flipped = (part = '') => {
  const bytes = Buffer.from(part, 'base64url');
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return bytes.toString('base64url');
};

export const responseEncryption: Family<Verifier> = {
  id: 'response-encryption',
  title: 'Encrypted answers of wallets',
  async control(verifier) {
    encrypted(await verifier.ask());
    await presentsCard(verifier);
  },
  cases: table<Verifier>(
    {
      section: 'OpenID4VP 1.0 section 8.3',
      why: 'an answer is encrypted to the key of this request, as was asked',
      safe: REFUSED,
    },
    {
      'in the clear': answered(async (verifier, asked) => verifier.plain(encrypted(asked), await whole(verifier, asked))),
      'to the key of another request': answered(async (verifier, asked) => {
        const response = await encryptResponse(await verifier.ask(), await whole(verifier, encrypted(asked)));
        return verifier.post(asked, { response });
      }),
      'to another key under the right name': jwe((asked, content) =>
        encryptResponse(asked, content, {
          jwk: { ...newKey().jwk, kid: asked.payload.client_metadata.jwks.keys[0].kid },
        }),
      ),
      'to a key that is unknown': jwe((asked, content) => encryptResponse(asked, content, { header: { kid: 'unknown' } })),
      'by an enc that was not asked for': jwe((asked, content) => encryptResponse(asked, content, { header: { enc: 'A128CBC-HS256' } })),
      'with key wrapping': jwe((asked, content) => encryptResponse(asked, content, { header: { alg: 'ECDH-ES+A128KW' } })),
      'with a changed ciphertext': parts(([a = '', b = '', c = '', d, e = '']) => [a, b, c, flipped(d), e]),
      'with a changed tag': parts(([a = '', b = '', c = '', d = '', e]) => [a, b, c, d, flipped(e)]),
      'with an extension that nobody knows': parts(([a = '', ...rest]) => [
        Buffer.from(JSON.stringify({ ...(jsonOfBase64(a) as object), crit: ['x'], x: 1 })).toString('base64url'),
        ...rest,
      ]),
      'only signed, by nobody': jwe(
        async (_, content) => `eyJhbGciOiJub25lIn0.${Buffer.from(JSON.stringify(content)).toString('base64url')}.`,
      ),
      'with text inside that is no JSON': jwe((asked) => encryptResponse(asked, 'nonsense')),
      'with a list inside': jwe((asked, content) => encryptResponse(asked, [content])),
      'text that is no JWE': jwe(async () => 'a.b.c.d.e'),
    },
  ),
};
