import { expect } from 'chai';
import { MAX_XML_BYTES, XmlTrustedLists } from '../../../adapters/xml/xml-trusted-lists.ts';
import { credentialIssuers, selectCertificates } from '../../../domain/trust-lists/select-certificates.ts';
import { TrustListRefusal } from '../../../domain/trust-lists/trust-list-refusal.ts';
import { processorTimeUntil } from '../../support/measurements.ts';
import { type CertifiedKey, certify } from '../../support/test-certificates.ts';
import { signXml, type XmlList, type XmlSigning, xmlList } from '../../support/xml-list.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const QEAA = 'http://uri.etsi.org/TrstSvc/Svctype/EAA/Q';
const STATUS = 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus';

describe('trusted lists in XML (ETSI TS 119 612)', () => {
  const documents = new XmlTrustedLists();
  let operator: CertifiedKey;
  let stranger: CertifiedKey;
  let issuer: CertifiedKey;
  let other: CertifiedKey;

  before(async () => {
    operator = await certify({ name: 'Operator' });
    stranger = await certify({ name: 'Stranger' });
    issuer = await certify({ name: 'Issuer', ca: true });
    other = await certify({ name: 'Other', ca: true });
  });

  const services = (...certificates: string[]) => [{ type: QEAA, certificates }];
  const signed = (list: XmlList = {}, signing?: XmlSigning, by = operator) =>
    signXml(xmlList({ services: services(issuer.certificate), ...list }), by, signing);
  const read = async (xml: string | Buffer, signers = [operator.certificate], now = NOW) => {
    const bytes = typeof xml === 'string' ? Buffer.from(xml) : xml;
    return documents.verify(bytes, signers, now).list;
  };
  const fault = (xml: string | Buffer, ...more: [string[]?, Date?]) =>
    read(xml, ...more).then(
      () => 'taken',
      (error: unknown) => {
        if (error instanceof TrustListRefusal) return error.message;
        throw error;
      },
    );
  const vouched = async (xml: string) => selectCertificates(await read(xml), credentialIssuers()).map(({ certificate }) => certificate);

  it('are parsed: services, status and times', async () => {
    const list = await read(signed({ sequenceNumber: 42 }));
    expect(list).to.deep.include({
      sequenceNumber: 42,
      issuedAt: new Date('2026-01-01T00:00:00Z'),
      nextUpdate: new Date('2030-01-01T00:00:00Z'),
    });
    const [entity] = list.entities;
    expect([entity?.name, entity?.country]).to.deep.equal(['Université & Co', 'FR']);
    expect(await vouched(signed())).to.deep.equal([issuer.certificate]);
    expect(await vouched(signed({}, { uri: '#list' })), 'by its id').to.deep.equal([issuer.certificate]);
    const withProperties = signed({}, { properties: '#props' });
    expect(withProperties).to.include('SignedProperties');
    expect(await vouched(withProperties), 'with the properties of XAdES').to.deep.equal([issuer.certificate]);
    expect(await fault(withProperties.replace('SigningTime>2026', 'SigningTime>2025'))).to.equal('signature');
    const asked = withProperties.replace('URI="#props"', `URI="#x'] | //*['"`);
    expect(await fault(asked)).to.equal('malformed: Reference does not identify exactly one part of the signature');
  });

  it('have the same hash as in earlier releases, for any form of the text', () => {
    const text = xmlList({ services: services('AAAA') })
      .replace('Rue 1', '<![CDATA[R & "1"]]>&#13;<!-- c -->e')
      .replace(
        '<tsl:TrustServiceProviderList>',
        '<q:x xmlns:q="urn:q" b="2&#10;" a="1"> mixed <q:y/> text </q:x><tsl:TrustServiceProviderList>',
      );
    const hashesOf = (xml: string) => {
      const { documentHash, contentHash } = documents.verify(Buffer.from(xml), [operator.certificate], NOW);
      return [documentHash, contentHash];
    };
    const xml = signXml(text, operator);
    const expected = ['LuHM1jLcmau1mK1ryXYq7t5Tgq9pPKXbbao6aO2R2Y8', 'CTKMjvZxzLQsXcYf4rJCAvyK8bLoYsqESO8QPrNxAXM'];
    expect(hashesOf(xml)).to.deep.equal(expected);
    expect(hashesOf(xml.replaceAll('\n', '\r\n')), 'with other line ends').to.deep.equal(expected);
    const [document, content] = hashesOf(signXml(text.replace('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'), operator));
    expect([document === expected[0], content === expected[1]], 'with another date').to.deep.equal([false, true]);
  });

  it('are accepted with processing instructions, which are signed and ignored', async () => {
    const good = signed();
    // xml-crypto refuses to sign them, so what it signs without them must not be valid with them.
    const inside = good.replace('<tsl:SchemeInformation>', '<?style a="b"?><tsl:SchemeInformation>');
    expect(await fault(inside)).to.equal('signature');
    expect(await fault(good.replace('?>', '?>\n<?xml-stylesheet href="a.xsl"?>'))).to.equal('signature');
    const byId = signed({}, { uri: '#list' }).replace('?>', '?>\n<?xml-stylesheet href="a.xsl"?>');
    expect(await vouched(byId), 'outside the element that is signed').to.deep.equal([issuer.certificate]);
  });

  it('are rejected when they are not well-formed', async () => {
    const good = signed();
    const inside = (text: string) => good.replace('<tsl:SchemeInformation>', `${text}<tsl:SchemeInformation>`);
    for (const text of [
      ...['<a></b>', '<a', '<a b=c/>', '<a b="1" b="2"/>', '<a b="1"c="2"/>', '<a b="<"/>', '<1/>', '< a/>', '</a>'],
      ...['&unknown;', '&#0;', '&#xFFFF;', '&#xD800;', '&#99999999999;', '&amp', '&', ']]>', '\u0001', '<a:b/>'],
      ...['<a:b:c xmlns:a="u"/>', '<a xmlns:p=""/>', '<a xmlns:xmlns="u"/>', '<a xmlns:xml="u"/>', '<:a/>', '<a:/>'],
      ...['<!-- a -- b -->', '<!-- a --->', '<![CDATA[', '<?xml version="1.0"?>', '<?a', '<?a:b?>', '<!a>'],
      '<a xmlns:p="u" xmlns:q="u" p:b="1" q:b="2"/>',
    ]) {
      expect(await fault(inside(text)), text).to.equal('malformed: it is not well-formed XML');
    }
    expect(await fault(`${good}<b/>`)).to.equal('malformed: it is not well-formed XML');
    expect(await fault(`${good}b`)).to.equal('malformed: it is not well-formed XML');
    expect(await fault(good.slice(0, -5))).to.equal('malformed: it is not well-formed XML');
    expect(await fault('')).to.equal('malformed: it is not well-formed XML');
  });

  it('select presently granted services, and no others', async () => {
    const [service] = services(issuer.certificate);
    const of = (changes: object) => vouched(signed({ services: [{ ...service, ...changes } as never] }));
    expect(await of({})).to.have.length(1);
    expect(await of({ status: `${STATUS}/withdrawn` })).to.deep.equal([]);
    expect(await of({ since: '2026-07-01T00:00:00Z' }), 'not yet').to.deep.equal([]);
    expect(await of({ type: 'http://uri.etsi.org/TrstSvc/Svctype/CA/QC' })).to.deep.equal([]);
    const extension = (critical: string, name: string) =>
      `<tsl:ServiceInformationExtensions><tsl:Extension Critical="${critical}"><tsl:${name}/></tsl:Extension></tsl:ServiceInformationExtensions>`;
    expect(await of({ extensions: extension('true', 'Unheard') })).to.deep.equal([]);
    expect(await of({ extensions: extension('false', 'Unheard') })).to.have.length(1);
    expect(await of({ extensions: extension('true', 'AdditionalServiceInformation') })).to.have.length(1);
    expect(await fault(signed({ services: [{ ...service, status: '' } as never] }))).to.equal(
      'malformed: ServiceStatus is missing or repeated',
    );
  });

  it('are rejected with unknown critical extensions of a service, a provider and the scheme', async () => {
    const list = xmlList({ services: services(issuer.certificate) });
    const extended = (parent: string, name: string, content: string, critical: string) =>
      signXml(
        list.replace(
          `</tsl:${parent}>`,
          `<tsl:${name}><tsl:Extension Critical="${critical}">${content}</tsl:Extension></tsl:${name}></tsl:${parent}>`,
        ),
        operator,
      );
    const ofService = (content: string, critical = 'true') =>
      vouched(extended('ServiceInformation', 'ServiceInformationExtensions', content, critical));
    expect(await ofService('a condition as text'), 'without an element').to.deep.equal([]);
    expect(await ofService('<tsl:Unheard/>', ' true '), 'white space').to.deep.equal([]);
    expect(await ofService('<tsl:Unheard/>', 'TRUE'), 'no boolean').to.deep.equal([]);
    expect(await ofService('a remark', '0')).to.have.length(1);
    for (const [parent, name] of [
      ['SchemeInformation', 'SchemeExtensions'],
      ['TSPInformation', 'TSPInformationExtensions'],
    ] as const) {
      expect(await fault(extended(parent, name, '<tsl:Unheard/>', 'true'))).to.equal(
        `critical_extension: ${name} contains an unsupported one`,
      );
      expect(await fault(extended(parent, name, '<tsl:Unheard/>', 'false'))).to.equal('taken');
    }
  });

  it('are rejected outside of their validity, of another type, and without a number', async () => {
    expect(await fault(signed({ nextUpdate: '2026-06-01T11:59:59Z' }))).to.match(/^outdated/);
    expect(await fault(signed({ issuedAt: '2026-06-01T13:00:00Z' }))).to.match(/^from_the_future/);
    expect(await fault(signed({ version: '4' }))).to.match(/^version/);
    const type = 'http://uri.etsi.org/TrstSvc/TrustedList/TSLType/EUlistofthelists';
    expect((await read(signed({ type }))).isListOfLists, 'one that only points to others').to.equal(true);
    expect(await fault(signed({ sequenceNumber: -1 }))).to.equal(
      'malformed: TSLSequenceNumber is not an integer from 1 to 9007199254740991',
    );
    expect((await read(signed({ nextUpdate: null }))).entities, 'closed').to.deep.equal([]);
  });

  it('are trusted only when a pinned certificate signed them', async () => {
    expect(await fault(signed(), [stranger.certificate])).to.match(/^untrusted_signer/);
    expect(await fault(signed(), [])).to.match(/^untrusted_signer/);
    expect(await fault(signed({}, {}, stranger))).to.match(/^untrusted_signer/);
    const borrowed = signed({}, { shownCertificateOf: operator.certificate }, stranger);
    expect(await fault(borrowed), 'with the certificate of somebody else').to.match(/^signature/);
    expect(await fault(xmlList()), 'not signed').to.match(/^malformed: exactly one signature/);
    expect(await fault(signed(), [operator.certificate], new Date('2050-01-01T00:00:00Z'))).to.match(/not valid now/);
  });

  it('are limited in the length of texts', async () => {
    const [service] = services(issuer.certificate);
    const of = (changes: object) => fault(signed({ services: [{ ...service, ...changes } as never] }));
    expect(await of({ status: 'x'.repeat(2_000) })).to.equal('taken');
    expect(await of({ status: 'x'.repeat(2_001) })).to.equal('malformed: a text is too long');
    const history = [{ status: 'x'.repeat(2_001), since: '2025-01-01T00:00:00Z' }];
    expect(await of({ history })).to.equal('malformed: a text is too long');
    expect(await fault(signed({ territory: 'x'.repeat(2_001) }))).to.equal('malformed: a text is too long');
    expect(await fault(signed({ territory: 'x'.repeat(2_001), nextUpdate: null }))).to.match(/too long/);
  });

  describe('with changed content are rejected', () => {
    const forged = () => services(other.certificate);

    it('in a certificate, a number or the signature', async () => {
      const good = signed();
      expect(await fault(good.replace(issuer.certificate, other.certificate))).to.equal('signature');
      expect(await fault(good.replace('SequenceNumber>1<', 'SequenceNumber>2<'))).to.equal('signature');
      const bent = good.replace(/<SignatureValue>../, '<SignatureValue>AA');
      expect(await fault(bent)).to.match(/^signature/);
    });

    /** The signed list put somewhere where nobody reads it, and another around it (XML signature wrapping). */
    const wrapped = (uri: string, place: (inner: string, signature: string) => string) => {
      const good = signed({ id: 'good' }, { uri }).replace(/^<\?xml[^>]*>\s*/, '');
      const [signature = ''] = /<Signature [\s\S]*<\/Signature>/.exec(good) ?? [];
      return place(good.replace(signature, ''), signature);
    };
    const outer = (id: string, more: string) =>
      xmlList({ id, services: forged() }).replace('</tsl:TrustServiceStatusList>', `${more}</tsl:TrustServiceStatusList>`);

    for (const uri of ['', '#good'] as const) {
      const cases: Record<string, () => string> = {
        'inside an object of the signature': () =>
          wrapped(uri, (inner, signature) => outer('bad', signature.replace('</Signature>', `<Object>${inner}</Object></Signature>`))),
        'beside the signature': () => wrapped(uri, (inner, signature) => outer('bad', signature + inner)),
        'under the same id': () => wrapped(uri, (inner, signature) => outer('good', signature + inner)),
        'with the signature still inside': () =>
          wrapped(uri, (inner, signature) =>
            outer('bad', inner.replace('</tsl:TrustServiceStatusList>', `${signature}</tsl:TrustServiceStatusList>`)),
          ),
      };
      for (const [name, make] of Object.entries(cases)) {
        it(`by wrapping the signed content ${name}, referenced by "${uri}"`, async () => {
          expect(await fault(make())).to.match(/^(?:signature|malformed)/);
        });
      }
    }

    it('by a second signature', async () => {
      const good = signed();
      const [signature = ''] = /<Signature [\s\S]*<\/Signature>/.exec(good) ?? [];
      expect(await fault(good.replace(signature, signature + signature))).to.match(/^malformed: exactly one signature/);
    });

    it('by a signature over a part of the document', async () => {
      const part = signed({}, { xpath: "//*[local-name(.)='SchemeInformation']", uri: '#part' });
      expect(await fault(part)).to.match(/^malformed: the signature is not over the whole document/);
    });

    it('by comments that split a value', async () => {
      const good = signed();
      const certificate = issuer.certificate.slice(0, 40);
      const cut = good.replace(certificate, `${certificate.slice(0, 20)}<!-- x -->${certificate.slice(20)}`);
      expect(await vouched(cut), 'read as it was signed').to.deep.equal([issuer.certificate]);
    });
  });

  it('are rejected at once when they exceed the cost limits, signed or not', async () => {
    const good = signed();
    const inside = (text: string) => good.replace('<tsl:SchemeInformation>', `<tsl:SchemeInformation>${text}`);
    const costly: Record<string, string> = {
      deep: inside(`${'<q>'.repeat(10_000)}${'</q>'.repeat(10_000)}`),
      'deep behind comments': inside(`${'<q><!--</q>-->'.repeat(8_000)}${'</q>'.repeat(8_000)}`),
      'of many prefixes': inside(Array.from({ length: 5_000 }, (_, index) => `<q xmlns:p${index}="u"/>`).join('')),
      'of many elements': inside('<q/>'.repeat(40_000)),
      'never closed': `<a ${'b="c" '.repeat(40_000)}`,
    };
    for (const [name, xml] of Object.entries(costly)) {
      const spent = await processorTimeUntil(async () => {
        expect(await fault(xml), name).to.match(/^(?:malformed|signature)/);
      });
      expect(spent, name).to.be.lessThan(1_000);
    }
  });

  it('are rejected with content that no list needs: document types, other algorithms, malformed text', async () => {
    const good = signed();
    const entity = good.replace('?>', '?><!DOCTYPE x [<!ENTITY a "b">]>');
    expect(await fault(entity)).to.equal('malformed: it has a document type declaration');
    const old = good.replaceAll('http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2000/09/xmldsig#sha1');
    expect(await fault(old)).to.equal('algorithm: DigestMethod has an unsupported algorithm');
    for (const method of ['2000/09/xmldsig#rsa-sha1', '2000/09/xmldsig#hmac-sha1', '2001/04/xmldsig-more#hmac-sha256']) {
      const weak = good.replace('http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256', `http://www.w3.org/${method}`);
      expect(await fault(weak), method).to.equal('algorithm: SignatureMethod has an unsupported algorithm');
    }
    const rsa = good.replace('ecdsa-sha256', 'rsa-sha256');
    expect(await fault(rsa), 'of another kind of key').to.match(/^signature/);
    const transform = good.replace('http://www.w3.org/2000/09/xmldsig#enveloped-signature', 'http://www.w3.org/TR/1999/REC-xslt-19991116');
    expect(await fault(transform)).to.equal('algorithm: Transform has an unsupported algorithm');
    expect(await fault(Buffer.from([0xff, 0xfe, 0x3c]))).to.equal('malformed: it is not UTF-8');
    expect(await fault('<a>')).to.match(/^malformed/);
    expect(await fault('<a/>')).to.equal('malformed: its root element is not TrustServiceStatusList');
  });
});

const MARK = '<tsl:TrustServiceProviderList>';

describe('cost of a trusted list in XML', () => {
  const lists = new XmlTrustedLists();
  let operator: CertifiedKey;

  before(async () => {
    operator = await certify({ name: 'Operator' });
  });

  const put = (inner: string) => xmlList().replace(MARK, inner + MARK);
  const outcome = (text: string | Buffer, reader = lists) => {
    try {
      reader.verify(Buffer.from(text), [operator.certificate], NOW);
      return 'accepted';
    } catch (error) {
      if (error instanceof TrustListRefusal) return error.message;
      throw error;
    }
  };
  /** Limits apply to the document before its signature is looked for. */
  const unsigned = (inner: string) => outcome(put(inner));
  const WITHOUT_SIGNATURE = 'malformed: exactly one signature is required, directly below the root element';

  it('is limited in bytes, elements and namespace declarations', () => {
    expect(outcome(Buffer.alloc(MAX_XML_BYTES + 1, ' '))).to.equal('malformed: lists in XML may have up to 16 MB');
    const small = new XmlTrustedLists({ elements: 50, namespaces: 10 });
    expect(outcome(put('<a/>'.repeat(50)), small)).to.equal('malformed: it is too large');
    expect(outcome(put('<a xmlns:p="u"/>'.repeat(10)), small)).to.equal('malformed: it is too large');
    expect(outcome(put('<a xmlns:p="u"/>'.repeat(9)), small)).to.equal(WITHOUT_SIGNATURE);
  });

  it('is limited in depth', () => {
    const nested = (levels: number) => `${'<a>'.repeat(levels)}${'</a>'.repeat(levels)}`;
    expect(unsigned(nested(39))).to.equal(WITHOUT_SIGNATURE);
    expect(unsigned(nested(40))).to.equal('malformed: it is too large');
  });

  it('is limited in the number and size of the attributes of an element', () => {
    const attributes = (count: number) => Array.from({ length: count }, (_, at) => ` a${at}=""`).join('');
    expect(unsigned(`<a${attributes(250)}/>`)).to.equal(WITHOUT_SIGNATURE);
    expect(unsigned(`<a${attributes(251)}/>`)).to.equal('malformed: it is too large');
    expect(unsigned(`<a b="${'x'.repeat(100_000)}"/>`)).to.equal(WITHOUT_SIGNATURE);
    expect(unsigned(`<a b="${'x'.repeat(200_000)}"/>`)).to.equal('malformed: it is too large');
  });

  it('is limited in the text of an element, also with references and sections', () => {
    expect(unsigned(`<a>${'x'.repeat(1_000_000)}</a>`)).to.equal(WITHOUT_SIGNATURE);
    for (const text of ['x'.repeat(1_100_000), '&amp;'.repeat(1_100_000), '<![CDATA[x]]>'.repeat(1_100_000)])
      expect(unsigned(`<a>${text}</a>`)).to.equal('malformed: it is too large');
  });

  it('is limited in the canonical form, which may repeat a long namespace with each element', () => {
    const uri = `urn:${'x'.repeat(50_000)}`;
    const declared = put('<a><p:b/></a>'.repeat(2_000)).replace(' Id="list"', ` Id="list" xmlns:p="${uri}"`);
    const exclusive = signXml(xmlList(), operator);
    const [signature = ''] = /<Signature [\s\S]*<\/Signature>/.exec(exclusive) ?? [];
    const end = '</tsl:TrustServiceStatusList>';
    expect(outcome(declared.replace(end, signature + end))).to.equal('malformed: it is too large');
  });

  it('does not include the digest of the document when the signature is not by a pinned signer', async () => {
    const stranger = await certify({ name: 'Stranger' });
    // Its canonical form is too large to be computed, which is not noticed.
    const uri = `urn:${'x'.repeat(50_000)}`;
    const small = signXml(xmlList(), stranger, { shownCertificateOf: operator.certificate });
    const large = small.replace(' Id="list"', ` Id="list" xmlns:p="${uri}"`).replace(MARK, '<a><p:b/></a>'.repeat(2_000) + MARK);
    expect(outcome(large)).to.equal('signature');
  });

  it('is limited in the size of SignedInfo, and in the transforms of a reference', () => {
    const wide = signXml(xmlList(), operator).replace('</SignedInfo>', `${'<x/>'.repeat(200)}</SignedInfo>`);
    expect(outcome(wide)).to.equal('malformed: SignedInfo is too large');
    const long = signXml(xmlList(), operator).replace('</SignedInfo>', `${' '.repeat(300_000)}</SignedInfo>`);
    expect(outcome(long)).to.equal('malformed: SignedInfo is too large');
    const transforms = Array.from({ length: 5 }, () => 'http://www.w3.org/2001/10/xml-exc-c14n#');
    expect(outcome(signXml(xmlList(), operator, { transforms }))).to.equal('malformed: Transforms is repeated or has too many steps');
  });
});
