import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import { verifyTransactionData } from '../../domain/formats/sd-jwt/key-binding.ts';
import { parseCertificateChain } from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import { type JsonObject, parseJsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { decompressList } from '../../domain/status-lists/codec.ts';
import { parseStatusReference, statusAt } from '../../domain/status-lists/reference.ts';
import { assertStatusListHeader, parseStatusListClaims } from '../../domain/status-lists/token.ts';

type Derivations = {
  readonly now: number;
  readonly access_certificate: {
    readonly der_b64: string;
    readonly sha256_b64url: string;
    readonly ski_b64url: string;
    readonly aki_b64url: string;
    readonly private_jwk: { readonly x: string; readonly y: string };
  };
  readonly aki: readonly { readonly values: readonly string[]; readonly root_ski: string }[];
  readonly status_list_token: { readonly compact: string; readonly status_signer_der_b64: string };
  readonly transaction_data: readonly {
    readonly encoded: string;
    readonly sha256_b64url: string;
    readonly sha384_b64url: string;
    readonly decoded: JsonObject;
    readonly wrong_hash_over_decoded_json: string;
  }[];
};
type Presentations = {
  readonly trust_anchors: readonly string[];
  readonly presentations: readonly { readonly name: string; readonly presentation: string }[];
};

function read<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8')) as T;
}

const derivations = read<Derivations>('derivations.json');
const { trust_anchors, presentations } = read<Presentations>('sd-jwt-vc.json');
const anchors = trust_anchors.map((certificate) => ({ certificate }));
const now = new Date(derivations.now * 1000);

describe('Certificate derivation vectors', () => {
  const { access_certificate: access } = derivations;
  const certificate = parseCertificate(Buffer.from(access.der_b64, 'base64'));

  it('yield the printed hash, key and key identifiers of a certificate', () => {
    expect(certificate?.hash).to.equal(access.sha256_b64url);
    expect(certificate?.subjectKeyId).to.equal(access.ski_b64url);
    expect(certificate?.authorityKeyId).to.equal(access.aki_b64url);
    const { x, y } = access.private_jwk;
    expect(certificate?.publicJwk).to.deep.equal({ kty: 'EC', crv: 'P-256', x, y });
    expect(certificate?.subjectText).to.equal('CN=Vector Relying Party,O=Vector Authority,C=DE');
  });

  it('yield the authority key identifiers of a chain, leaf first', () => {
    const valid = presentations.find(({ name }) => name === 'valid')?.presentation ?? '';
    const header = JSON.parse(Buffer.from(valid.split('.')[0] ?? '', 'base64url').toString('utf8'));
    const chain = header.x5c as string[];
    const verdict = new NodeCertificates().verifyChain(chain, anchors, now, { purpose: 'SD-JWT VC' });
    expect(verdict.trusted && verdict.anchorCertificate).to.equal(trust_anchors[0]);
    const named = chain.map((text) => parseCertificate(Buffer.from(text, 'base64'))?.authorityKeyId);
    expect(named).to.deep.equal(derivations.aki[0]?.values);
    expect(named.at(-1)).to.equal(derivations.aki[0]?.root_ski);
    expect(parseCertificate(Buffer.from(trust_anchors[0] ?? '', 'base64'))?.subjectKeyId).to.equal(derivations.aki[0]?.root_ski);
  });
});

describe('Transaction data vectors', () => {
  for (const one of derivations.transaction_data) {
    const claims = { transaction_data_hashes: [one.sha256_b64url] };

    it(`decode ${one.encoded.slice(0, 30)}…`, () => {
      expect(parseJsonObject(Buffer.from(one.encoded, 'base64url').toString())).to.deep.equal(one.decoded);
      expect(hash('sha384', one.encoded, 'base64url')).to.equal(one.sha384_b64url);
    });

    it(`accept the hash of ${one.encoded.slice(0, 30)}…`, () => {
      expect(verifyTransactionData(claims, [one.encoded], [])).to.deep.equal([one.encoded]);
    });

    it(`reject a hash over the decoded JSON of ${one.encoded.slice(0, 30)}…`, () => {
      const wrong = { transaction_data_hashes: [one.wrong_hash_over_decoded_json] };
      expect(() => verifyTransactionData(wrong, [one.encoded], [])).to.throw(Refusal, 'mismatch');
    });

    it(`reject an algorithm that was not requested: ${one.encoded.slice(0, 30)}…`, () => {
      const other = { transaction_data_hashes: [one.sha384_b64url], transaction_data_hashes_alg: 'sha-384' };
      expect(() => verifyTransactionData(other, [one.encoded], [])).to.throw(Refusal, 'transaction_data_alg');
    });
  }

  it('accept or omit a transaction that another credential may confirm', () => {
    const [first, second] = derivations.transaction_data;
    const alternatives = [second?.encoded ?? ''];
    const required = [first?.encoded ?? ''];
    const one = { transaction_data_hashes: [first?.sha256_b64url ?? ''] };
    const both = { transaction_data_hashes: [second?.sha256_b64url ?? '', first?.sha256_b64url ?? ''] };
    expect(verifyTransactionData(one, required, alternatives)).to.deep.equal(required);
    expect(verifyTransactionData(both, required, alternatives)).to.have.members([...required, ...alternatives]);
    expect(verifyTransactionData({}, [], alternatives)).to.deep.equal([]);
    expect(() => verifyTransactionData(one, [], alternatives)).to.throw(Refusal, 'mismatch');
  });
});

describe('status list token of the SD-JWT VC vectors', () => {
  const { compact, status_signer_der_b64: signer } = derivations.status_list_token;
  const valid = presentations.find(({ name }) => name === 'valid')?.presentation ?? '';
  const reference = parseStatusReference(parseCompactJws(valid.split('~')[0] ?? '')?.payload ?? {});

  it('is signed under the anchor of the credential', () => {
    const jws = parseCompactJws(compact);
    if (jws === undefined) throw new Error('no JWS');
    assertStatusListHeader(jws.header);
    expect(parseCertificateChain(jws.header)).to.deep.equal([signer]);
    const verdict = new NodeCertificates().verifyChain([signer], anchors, now, { purpose: 'status list' });
    expect(verdict.trusted).to.equal(true);
    if (!verdict.trusted) return;
    expect(new NodeSignatures().verify(verdict.key, jws.signingInput, jws.signature)).to.equal(true);
  });

  it('marks the credential as valid, and another one as revoked', () => {
    const { uri = '', idx = -1 } = reference ?? {};
    const { bits, lst } = parseStatusListClaims(parseCompactJws(compact)?.payload, uri, now);
    const list = decompressList(lst, bits);
    expect([statusAt(list, bits, idx), statusAt(list, bits, 0)]).to.deep.equal([0, 1]);
  });
});
