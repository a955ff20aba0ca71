import { expect } from 'chai';
import type { DcApiVerification, PostedVerification } from '../../../domain/sessions/session.ts';
import { invocationUri } from '../../../domain/shared/invocation-uri.ts';
import { bindingOf } from '../../../domain/verification/binding.ts';
import { requestParameters } from '../../../domain/verification/request-object.ts';
import {
  deviceTransactionData,
  keyBoundTransactionData,
} from '../../../domain/verification/transaction-data.ts';

const PARAMETERS = { responseMode: 'direct_post', nonce: 'n', dcqlQuery: { credentials: [] } };

describe('The parameters of a presentation request', () => {
  it('say nothing of what is not asked for', () => {
    const { client_metadata, ...others } = requestParameters(PARAMETERS);
    expect(Object.keys(client_metadata as object)).to.deep.equal(['vp_formats_supported']);
    expect(Object.keys(others)).to.deep.equal(['response_type', 'response_mode', 'nonce', 'dcql_query']);
  });

  it('say who asks in the words of the operator, where there are any', () => {
    const asker = { clientName: 'Acme', logoUri: 'https://acme.example/logo.png' };
    const metadataOf = (given: object) =>
      requestParameters({ ...PARAMETERS, asker: given })['client_metadata'];
    expect(metadataOf(asker)).to.include({ client_name: 'Acme', logo_uri: asker.logoUri });
    for (const nothing of [{}, { clientName: null, logoUri: null }]) {
      expect(metadataOf(nothing)).not.to.have.any.keys('client_name', 'logo_uri');
    }
  });

  it('have the key, the transactions and what is attached', () => {
    const [encryptionJwk, verifierInfo] = [{ kty: 'EC' }, [{ format: 'x', data: 'y' }]];
    const request = { ...PARAMETERS, encryptionJwk, transactionData: ['e30'], verifierInfo };
    const parameters = requestParameters(request);
    expect(parameters).to.deep.include({ transaction_data: ['e30'], verifier_info: verifierInfo });
    expect(parameters['client_metadata']).to.deep.include({ jwks: { keys: [encryptionJwk] } });
  });

  it('go into a link, texts as they are and the rest as JSON', () => {
    const parameters = { client_id: 'a:b', dcql_query: { a: [1] } };
    const query = 'client_id=a%3Ab&dcql_query=%7B%22a%22%3A%5B1%5D%7D';
    expect(invocationUri('openid4vp://', parameters)).to.equal(`openid4vp://?${query}`);
    expect(invocationUri('https://w.example/?x=1', parameters)).to.equal(`https://w.example/?x=1&${query}`);
  });
});

describe('What a presentation is made for', () => {
  const asked = {
    kind: 'verification',
    offerRequest: {},
    dcqlQuery: {},
    nonce: 'n',
    requestUrl: '',
  } as const;

  it('is who asked, where the answer is posted', () => {
    const responseUri = 'https://vidimus.example/acme/response/1';
    const posted: PostedVerification = {
      ...asked,
      ...{ responseMode: 'direct_post', clientId: 'x509_hash:h', responseUri, state: 's' },
    };
    const { audience, recipients, transcripts } = bindingOf(posted);
    expect([audience, recipients]).to.deep.equal(['x509_hash:h', ['x509_hash:h', 'https://vidimus.example']]);
    expect(transcripts()).to.have.length(1);
  });

  it('is each page that may ask through the Digital Credentials API', () => {
    const origins = ['https://shop.example', 'https://www.shop.example'];
    const pages = ['origin:https://shop.example', 'origin:https://www.shop.example'];
    const unsigned: DcApiVerification = { ...asked, responseMode: 'dc_api', origins };
    const binding = bindingOf(unsigned);
    expect([binding.audience, binding.recipients]).to.deep.equal([pages, [...origins, ...pages]]);
    expect(new Set(binding.transcripts().map(String)).size, 'one for each').to.equal(2);
    // OpenID4VP 1.0 appendix A.4: the audience of a signed request is the page all the same
    const signed = bindingOf({ ...unsigned, clientId: 'x509_hash:h' });
    expect([signed.audience, signed.recipients]).to.deep.equal([
      pages,
      [...origins, ...pages, 'x509_hash:h'],
    ]);
  });
});

describe('The transactions that a credential confirms', () => {
  const objects = [
    { type: 'pay', credential_ids: ['card'], transaction_data_hashes_alg: ['sha-384'] },
    { type: 'sign', credential_ids: ['card', 'pid'] },
    { type: 'toString', credential_ids: ['pid'] },
  ];
  const request = {
    transactionData: ['first', 'second', 'third'],
    transactionDataObjects: objects,
    transactionDataElements: { pay: { namespace: 'n', element: 'e' } },
  };

  it('are those of its query: alone, or one of several', () => {
    expect(keyBoundTransactionData(request, 'card')).to.deep.equal({
      transactionData: ['first'],
      alternativeTransactionData: ['second'],
      authenticatedTransactionData: [],
    });
    expect(keyBoundTransactionData(request, 'other')).to.deep.equal({
      transactionData: [],
      alternativeTransactionData: [],
      authenticatedTransactionData: [],
    });
    const transactionDataSchemas = { sign: 'urn:eudi:sca:payment:1' } as const;
    const { authenticatedTransactionData } = keyBoundTransactionData(
      { ...request, transactionDataSchemas },
      'card',
    );
    expect(authenticatedTransactionData).to.deep.equal(['second']);
    expect(keyBoundTransactionData({}, 'card').transactionData).to.deep.equal([]);
  });

  it('name the element of their type, and none for another', () => {
    const nowhere = { namespace: '', element: '', algorithms: [] };
    expect(deviceTransactionData(request, 'card')).to.deep.equal([
      { namespace: 'n', element: 'e', text: 'first', required: true, algorithms: ['sha-384'] },
      { ...nowhere, text: 'second', required: false },
    ]);
    expect(deviceTransactionData(request, 'pid')).to.deep.equal([
      { ...nowhere, text: 'second', required: false },
      { ...nowhere, text: 'third', required: true },
    ]);
    const odd = { ...request, transactionDataObjects: [{ credential_ids: ['card'], type: ['pay'] }] };
    expect(deviceTransactionData(odd, 'card'), 'a type that is no text').to.deep.equal([
      { ...nowhere, text: 'first', required: true },
    ]);
  });
});
