import { expect } from 'chai';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { decodeCbor } from '../../domain/formats/cbor/decode.ts';
import { parseCoseAlgorithm, parseCoseSign1, sigStructure } from '../../domain/formats/cose/sign1.ts';
import { processDisclosures } from '../../domain/formats/sd-jwt/disclosures.ts';
import { assertDpopProofClaims, parseDpopProof } from '../../domain/oauth/dpop.ts';
import { isChallenge, verifyPkce } from '../../domain/oauth/pkce.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { withoutUndisclosed } from '../support/sd-jwt-maker.ts';

/** The examples that specifications print: what they call right is right here, and a change of it is not. */
const signatures = new NodeSignatures();

describe('RFC 7636 appendix B', () => {
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

  it('binds the challenge to its verifier', () => {
    expect(isChallenge(challenge)).to.equal(true);
    expect(verifyPkce(verifier, challenge)).to.equal(true);
    expect(verifyPkce(challenge, challenge), 'the plain method').to.equal(false);
    expect(verifyPkce(`${verifier.slice(0, -1)}l`, challenge)).to.equal(false);
  });
});

describe('RFC 7638 by RFC 8037 appendix A.3 and RFC 9449 section 6.1', () => {
  it('yields the thumbprints from the required properties', () => {
    expect(thumbprint({ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo', kid: 'any' })).to.equal(
      'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
    );
    expect(
      thumbprint({
        kty: 'EC',
        crv: 'P-256',
        x: 'l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs',
        y: '9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA',
      }),
    ).to.equal('0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I');
  });
});

describe('RFC 9449 sections 4.1 and 7.1', () => {
  const header =
    'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJo' +
    'RjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19';
  const tokenProof = `${header}.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg`;
  const resourceProof = `${header}.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA`;
  const accessToken = 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU';

  function accept(proof: string, expected: { method: string; url: string; now: number; accessToken?: string }) {
    const parsedProof = parseDpopProof([proof]);
    expect(signatures.verify(parsedProof.key, parsedProof.signingInput, parsedProof.signature)).to.equal(true);
    return assertDpopProofClaims(parsedProof, { ...expected, now: new Date(expected.now * 1000) });
  }

  it('accepts the proof for the token endpoint', () => {
    const expected = { method: 'POST', url: 'https://server.example.com/token', now: 1562262616 };
    expect(accept(tokenProof, expected).thumbprint).to.equal('0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I');
    expect(() => accept(tokenProof, { ...expected, now: 1562262616 + 3600 })).to.throw(Failure, /iat/);
    expect(() => accept(tokenProof, { ...expected, method: 'GET' })).to.throw(Failure, /htm/);
  });

  it('accepts the proof for a protected resource with its access token only', () => {
    const expected = { method: 'GET', url: 'https://resource.example.org/protectedresource', now: 1562262618, accessToken };
    expect(accept(resourceProof, expected).thumbprint).to.equal('0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I');
    expect(() => accept(resourceProof, { ...expected, accessToken: `${accessToken}x` })).to.throw(Failure, /ath/);
  });
});

describe('RFC 9901 section 4.2', () => {
  it('inserts disclosures at their digests', () => {
    const { claims } = processDisclosures(
      {
        _sd: ['X9yH0Ajrdm1Oij4tWso9UzzKJvPoDxwmuEcO3XAdRC0'],
        nationalities: ['DE', { '...': 'w0I8EKcdCtUPkGCNUrfwVp2xEgNjtoIDlOxc9-PlOhs' }, 'US'],
      },
      ['WyJfMjZiYzRMVC1hYzZxMktJNmNCVzVlcyIsICJmYW1pbHlfbmFtZSIsICJNw7ZiaXVzIl0', 'WyJsa2x4RjVqTVlsR1RQVW92TU5JdkNBIiwgIkZSIl0'],
    );
    expect(withoutUndisclosed(claims)).to.deep.equal({ nationalities: ['DE', 'FR', 'US'], family_name: 'Möbius' });
  });
});

describe('RFC 9052 appendix C.2.1', () => {
  const key: PublicJwk = {
    kty: 'EC',
    crv: 'P-256',
    x: Buffer.from('bac5b11cad8f99f9c72b05cf4b9e26d244dc189f745228255a219a86d6a09eff', 'hex').toString('base64url'),
    y: Buffer.from('20138bf82dc1b6d562be0fa54ab7804a3a64b6d72ccfed6b6fb6ed28bbfc117e', 'hex').toString('base64url'),
  };
  const message = Buffer.from(
    'd28443a10126a10442313154546869732069732074686520636f6e74656e742e58408eb33e4ca31d1c465ab05aac34cc6b23d58fef5c083106c4d25' +
      'a91aef0b0117e2af9a291aa32e14ab834dc56ed2a223444547e01f11d3b0916e5a4c345cacb36',
    'hex',
  );

  it('verifies the signature of the message', () => {
    const sign1 = parseCoseSign1(decodeCbor(message));
    expect(parseCoseAlgorithm(sign1, ['ES256'], 'issuer_alg')).to.equal('ES256');
    const payload = sign1.payload ?? Buffer.alloc(0);
    expect(payload.toString()).to.equal('This is the content.');
    const verify = (content: Buffer) => signatures.verify(key, sigStructure(sign1.protectedBytes, content), sign1.signature);
    expect(verify(payload)).to.equal(true);
    expect(verify(Buffer.from('This is the content!'))).to.equal(false);
  });
});
