import { expect } from 'chai';
import { interactiveTranscript, redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import { deviceResponse } from '../support/device.ts';
import { Issuer } from '../support/interactive-issuer.ts';
import { encryptFor } from '../support/interactive-wallet.ts';
import { issue } from '../support/present.ts';

const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';
const QUERY = {
  credentials: [
    {
      id: 'card',
      format: 'mso_mdoc',
      meta: { doctype_value: DOC_TYPE },
      claims: [{ path: [NAMESPACE, 'family_name'] }],
    },
  ],
};

describe('An mdoc that is presented before an issuance', () => {
  let issuer: Issuer;

  before(async () => {
    issuer = await Issuer.open();
    const display = [{ name: 'Licence', locale: 'en' }];
    const claimsByNamespace = { [NAMESPACE]: { family_name: 'Nygård' } };
    const config = { format: 'mso_mdoc', docType: DOC_TYPE, display, claimsByNamespace };
    await issuer.write('/issuer/credentials', { id: 'mdl', config });
  });
  after(() => issuer.close());

  for (const responseMode of ['direct_post', 'direct_post.jwt']) {
    it(`is good for this endpoint and this request only, like ${responseMode}`, async () => {
      const id = `licence-${responseMode.length}`;
      await issuer.check(id, { dcql_query: QUERY, responseMode });
      await issuer.badge(`of-${id}`, [{ type: 'openid4vp_presentation', presentationConfigId: id }]);
      const { text, holder } = await issue(issuer.service, issuer, 'mdl');
      const present = async (transcript: (nonce: string, encryptionKey: never) => Buffer) => {
        const wallet = issuer.wallet();
        const { uri } = await issuer.offer(`of-${id}`);
        const asked = wallet.asksPresentation(await wallet.begin(uri, { scope: `of-${id}` }));
        const [key] = asked.request.client_metadata.jwks?.keys ?? [];
        const bytes = transcript(asked.request.nonce, key as never);
        const vp_token = { card: [deviceResponse({ text, holder, docType: DOC_TYPE }, bytes)] };
        const answer = key === undefined ? { vp_token } : { response: await encryptFor(asked, { vp_token }) };
        return { wallet, answer: await wallet.respond(asked, answer) };
      };
      const { endpoint } = issuer.wallet();
      const { wallet, answer } = await present((nonce, encryptionKey) =>
        interactiveTranscript({ endpoint, nonce, encryptionKey }),
      );
      wallet.issuedCode(answer);

      const wrong: readonly ((nonce: string, encryptionKey: never) => Buffer)[] = [
        (_, encryptionKey) => interactiveTranscript({ endpoint, nonce: 'other', encryptionKey }),
        (nonce, encryptionKey) => interactiveTranscript({ endpoint: `${endpoint}x`, nonce, encryptionKey }),
        (nonce, encryptionKey) =>
          redirectTranscript({ clientId: 'x509_hash:x', responseUri: endpoint, nonce, encryptionKey }),
      ];
      for (const transcript of wrong) {
        const { status, body } = (await present(transcript)).answer;
        expect([status, body.error]).to.deep.equal([400, 'access_denied']);
      }
    });
  }
});
