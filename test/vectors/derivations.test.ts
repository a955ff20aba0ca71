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

function readVectors<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8')) as T;
}

const derivations = readVectors<Derivations>('derivations.json');
const { trust_anchors, presentations } = readVectors<Presentations>('sd-jwt-vc.json');
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
    const chainResult = new NodeCertificates().verifyChain(chain, anchors, now, { purpose: 'SD-JWT VC' });
    expect(chainResult.trusted && chainResult.anchorCertificate).to.equal(trust_anchors[0]);
    const authorityKeyIds = chain.map((text) => parseCertificate(Buffer.from(text, 'base64'))?.authorityKeyId);
    expect(authorityKeyIds).to.deep.equal(derivations.aki[0]?.values);
    expect(authorityKeyIds.at(-1)).to.equal(derivations.aki[0]?.root_ski);
    expect(parseCertificate(Buffer.from(trust_anchors[0] ?? '', 'base64'))?.subjectKeyId).to.equal(derivations.aki[0]?.root_ski);
  });
});

describe('Transaction data vectors', () => {
  for (const transactionVector of derivations.transaction_data) {
    const claims = { transaction_data_hashes: [transactionVector.sha256_b64url] };

    it(`decode ${transactionVector.encoded.slice(0, 30)}…`, () => {
      expect(parseJsonObject(Buffer.from(transactionVector.encoded, 'base64url').toString())).to.deep.equal(transactionVector.decoded);
      expect(hash('sha384', transactionVector.encoded, 'base64url')).to.equal(transactionVector.sha384_b64url);
    });

    it(`accept the hash of ${transactionVector.encoded.slice(0, 30)}…`, () => {
      expect(verifyTransactionData(claims, [transactionVector.encoded], [])).to.deep.equal([transactionVector.encoded]);
    });

    it(`reject a hash over the decoded JSON of ${transactionVector.encoded.slice(0, 30)}…`, () => {
      const wrongClaims = { transaction_data_hashes: [transactionVector.wrong_hash_over_decoded_json] };
      expect(() => verifyTransactionData(wrongClaims, [transactionVector.encoded], [])).to.throw(Refusal, 'mismatch');
    });

    it(`reject an algorithm that was not requested: ${transactionVector.encoded.slice(0, 30)}…`, () => {
      const sha384Claims = { transaction_data_hashes: [transactionVector.sha384_b64url], transaction_data_hashes_alg: 'sha-384' };
      expect(() => verifyTransactionData(sha384Claims, [transactionVector.encoded], [])).to.throw(Refusal, 'transaction_data_alg');
    });
  }

  it('accept or omit a transaction that another credential may confirm', () => {
    const [firstVector, secondVector] = derivations.transaction_data;
    const alternatives = [secondVector?.encoded ?? ''];
    const required = [firstVector?.encoded ?? ''];
    const swappedClaims = { transaction_data_hashes: [firstVector?.sha256_b64url ?? ''] };
    const bothClaims = { transaction_data_hashes: [secondVector?.sha256_b64url ?? '', firstVector?.sha256_b64url ?? ''] };
    expect(verifyTransactionData(swappedClaims, required, alternatives)).to.deep.equal(required);
    expect(verifyTransactionData(bothClaims, required, alternatives)).to.have.members([...required, ...alternatives]);
    expect(verifyTransactionData({}, [], alternatives)).to.deep.equal([]);
    expect(() => verifyTransactionData(swappedClaims, [], alternatives)).to.throw(Refusal, 'mismatch');
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
    const chainResult = new NodeCertificates().verifyChain([signer], anchors, now, { purpose: 'status list' });
    expect(chainResult.trusted).to.equal(true);
    if (!chainResult.trusted) return;
    expect(new NodeSignatures().verify(chainResult.key, jws.signingInput, jws.signature)).to.equal(true);
  });

  it('marks the credential as valid, and another one as revoked', () => {
    const { uri = '', idx = -1 } = reference ?? {};
    const { bits, lst } = parseStatusListClaims(parseCompactJws(compact)?.payload, uri, now);
    const list = decompressList(lst, bits);
    expect([statusAt(list, bits, idx), statusAt(list, bits, 0)]).to.deep.equal([0, 1]);
  });
});
