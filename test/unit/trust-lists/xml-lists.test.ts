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
  let otherOperator: CertifiedKey;
  let issuer: CertifiedKey;
  let otherIssuer: CertifiedKey;

  before(async () => {
    operator = await certify({ name: 'Operator' });
    otherOperator = await certify({ name: 'Other CA' });
    issuer = await certify({ name: 'Issuer', ca: true });
    otherIssuer = await certify({ name: 'Other', ca: true });
  });

  const services = (...certificates: string[]) => [{ type: QEAA, certificates }];
  const signedList = (list: XmlList = {}, signing?: XmlSigning, by = operator) =>
    signXml(xmlList({ services: services(issuer.certificate), ...list }), by, signing);
  const read = async (xml: string | Buffer, signers = [operator.certificate], now = NOW) => {
    const bytes = typeof xml === 'string' ? Buffer.from(xml) : xml;
    return documents.verify(bytes, signers, now).list;
  };
  const problemOf = (xml: string | Buffer, ...options: [string[]?, Date?]) =>
    read(xml, ...options).then(
      () => 'accepted',
      (error: unknown) => {
        if (error instanceof TrustListRefusal) return error.message;
        throw error;
      },
    );
  const trustedCertificates = async (xml: string) =>
    selectCertificates(await read(xml), credentialIssuers()).map(({ certificate }) => certificate);

  it('are parsed: services, status and times', async () => {
    const list = await read(signedList({ sequenceNumber: 42 }));
    expect(list).to.deep.include({
      sequenceNumber: 42,
      issuedAt: new Date('2026-01-01T00:00:00Z'),
      nextUpdate: new Date('2030-01-01T00:00:00Z'),
    });
    const [entity] = list.entities;
    expect([entity?.name, entity?.country]).to.deep.equal(['Université & Co', 'FR']);
    expect(await trustedCertificates(signedList())).to.deep.equal([issuer.certificate]);
    expect(await trustedCertificates(signedList({}, { uri: '#list' })), 'by its id').to.deep.equal([issuer.certificate]);
    const withProperties = signedList({}, { properties: '#props' });
    expect(withProperties).to.include('SignedProperties');
    expect(await trustedCertificates(withProperties), 'with the properties of XAdES').to.deep.equal([issuer.certificate]);
    expect(await problemOf(withProperties.replace('SigningTime>2026', 'SigningTime>2025'))).to.equal('signature');
    const injected = withProperties.replace('URI="#props"', `URI="#x'] | //*['"`);
    expect(await problemOf(injected)).to.equal('malformed: Reference does not identify exactly one part of the signature');
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
    const valid = signedList();
    // xml-crypto cannot sign them, so a signature without them must not be valid with them.
    const withInserted = valid.replace('<tsl:SchemeInformation>', '<?style a="b"?><tsl:SchemeInformation>');
    expect(await problemOf(withInserted)).to.equal('signature');
    expect(await problemOf(valid.replace('?>', '?>\n<?xml-stylesheet href="a.xsl"?>'))).to.equal('signature');
    const referencedById = signedList({}, { uri: '#list' }).replace('?>', '?>\n<?xml-stylesheet href="a.xsl"?>');
    expect(await trustedCertificates(referencedById), 'outside the element that is signed').to.deep.equal([issuer.certificate]);
  });

  it('are rejected when they are not well-formed', async () => {
    const valid = signedList();
    const withInserted = (text: string) => valid.replace('<tsl:SchemeInformation>', `${text}<tsl:SchemeInformation>`);
    for (const text of [
      ...['<a></b>', '<a', '<a b=c/>', '<a b="1" b="2"/>', '<a b="1"c="2"/>', '<a b="<"/>', '<1/>', '< a/>', '</a>'],
      ...['&unknown;', '&#0;', '&#xFFFF;', '&#xD800;', '&#99999999999;', '&amp', '&', ']]>', '\u0001', '<a:b/>'],
      ...['<a:b:c xmlns:a="u"/>', '<a xmlns:p=""/>', '<a xmlns:xmlns="u"/>', '<a xmlns:xml="u"/>', '<:a/>', '<a:/>'],
      ...['<!-- a -- b -->', '<!-- a --->', '<![CDATA[', '<?xml version="1.0"?>', '<?a', '<?a:b?>', '<!a>'],
      '<a xmlns:p="u" xmlns:q="u" p:b="1" q:b="2"/>',
    ]) {
      expect(await problemOf(withInserted(text)), text).to.equal('malformed: it is not well-formed XML');
    }
    expect(await problemOf(`${valid}<b/>`)).to.equal('malformed: it is not well-formed XML');
    expect(await problemOf(`${valid}b`)).to.equal('malformed: it is not well-formed XML');
    expect(await problemOf(valid.slice(0, -5))).to.equal('malformed: it is not well-formed XML');
    expect(await problemOf('')).to.equal('malformed: it is not well-formed XML');
  });

  it('select presently granted services, and no others', async () => {
    const [service] = services(issuer.certificate);
    const problemWith = (changes: object) => trustedCertificates(signedList({ services: [{ ...service, ...changes } as never] }));
    expect(await problemWith({})).to.have.length(1);
    expect(await problemWith({ status: `${STATUS}/withdrawn` })).to.deep.equal([]);
    expect(await problemWith({ since: '2026-07-01T00:00:00Z' }), 'not yet').to.deep.equal([]);
    expect(await problemWith({ type: 'http://uri.etsi.org/TrstSvc/Svctype/CA/QC' })).to.deep.equal([]);
    const extension = (critical: string, name: string) =>
      `<tsl:ServiceInformationExtensions><tsl:Extension Critical="${critical}"><tsl:${name}/></tsl:Extension></tsl:ServiceInformationExtensions>`;
    expect(await problemWith({ extensions: extension('true', 'Unheard') })).to.deep.equal([]);
    expect(await problemWith({ extensions: extension('false', 'Unheard') })).to.have.length(1);
    expect(await problemWith({ extensions: extension('true', 'AdditionalServiceInformation') })).to.have.length(1);
    expect(await problemOf(signedList({ services: [{ ...service, status: '' } as never] }))).to.equal(
      'malformed: ServiceStatus is missing or repeated',
    );
  });

  it('are rejected with unknown critical extensions of a service, a provider and the scheme', async () => {
    const list = xmlList({ services: services(issuer.certificate) });
    const withExtension = (parent: string, name: string, content: string, critical: string) =>
      signXml(
        list.replace(
          `</tsl:${parent}>`,
          `<tsl:${name}><tsl:Extension Critical="${critical}">${content}</tsl:Extension></tsl:${name}></tsl:${parent}>`,
        ),
        operator,
      );
    const withServiceExtension = (content: string, critical = 'true') =>
      trustedCertificates(withExtension('ServiceInformation', 'ServiceInformationExtensions', content, critical));
    expect(await withServiceExtension('a condition as text'), 'without an element').to.deep.equal([]);
    expect(await withServiceExtension('<tsl:Unheard/>', ' true '), 'white space').to.deep.equal([]);
    expect(await withServiceExtension('<tsl:Unheard/>', 'TRUE'), 'no boolean').to.deep.equal([]);
    expect(await withServiceExtension('a remark', '0')).to.have.length(1);
    for (const [parent, name] of [
      ['SchemeInformation', 'SchemeExtensions'],
      ['TSPInformation', 'TSPInformationExtensions'],
    ] as const) {
      expect(await problemOf(withExtension(parent, name, '<tsl:Unheard/>', 'true'))).to.equal(
        `critical_extension: ${name} contains an unsupported one`,
      );
      expect(await problemOf(withExtension(parent, name, '<tsl:Unheard/>', 'false'))).to.equal('accepted');
    }
  });

  it('are rejected outside of their validity, of another type, and without a number', async () => {
    expect(await problemOf(signedList({ nextUpdate: '2026-06-01T11:59:59Z' }))).to.match(/^outdated/);
    expect(await problemOf(signedList({ issuedAt: '2026-06-01T13:00:00Z' }))).to.match(/^from_the_future/);
    expect(await problemOf(signedList({ version: '4' }))).to.match(/^version/);
    const type = 'http://uri.etsi.org/TrstSvc/TrustedList/TSLType/EUlistofthelists';
    expect((await read(signedList({ type }))).isListOfLists, 'a list of lists').to.equal(true);
    expect(await problemOf(signedList({ sequenceNumber: -1 }))).to.equal(
      'malformed: TSLSequenceNumber is not an integer from 1 to 9007199254740991',
    );
    expect((await read(signedList({ nextUpdate: null }))).entities, 'closed').to.deep.equal([]);
  });

  it('are trusted only when a pinned certificate signed them', async () => {
    expect(await problemOf(signedList(), [otherOperator.certificate])).to.match(/^untrusted_signer/);
    expect(await problemOf(signedList(), [])).to.match(/^untrusted_signer/);
    expect(await problemOf(signedList({}, {}, otherOperator))).to.match(/^untrusted_signer/);
    const borrowed = signedList({}, { shownCertificateOf: operator.certificate }, otherOperator);
    expect(await problemOf(borrowed), 'with the certificate of another operator').to.match(/^signature/);
    expect(await problemOf(xmlList()), 'not signed').to.match(/^malformed: exactly one signature/);
    expect(await problemOf(signedList(), [operator.certificate], new Date('2050-01-01T00:00:00Z'))).to.match(/not valid now/);
  });

  it('are limited in the length of texts', async () => {
    const [service] = services(issuer.certificate);
    const problemWith = (changes: object) => problemOf(signedList({ services: [{ ...service, ...changes } as never] }));
    expect(await problemWith({ status: 'x'.repeat(2_000) })).to.equal('accepted');
    expect(await problemWith({ status: 'x'.repeat(2_001) })).to.equal('malformed: a text is too long');
    const history = [{ status: 'x'.repeat(2_001), since: '2025-01-01T00:00:00Z' }];
    expect(await problemWith({ history })).to.equal('malformed: a text is too long');
    expect(await problemOf(signedList({ territory: 'x'.repeat(2_001) }))).to.equal('malformed: a text is too long');
    expect(await problemOf(signedList({ territory: 'x'.repeat(2_001), nextUpdate: null }))).to.match(/too long/);
  });

  describe('with changed content are rejected', () => {
    const forgedServices = () => services(otherIssuer.certificate);

    it('in a certificate, a number or the signature', async () => {
      const valid = signedList();
      expect(await problemOf(valid.replace(issuer.certificate, otherIssuer.certificate))).to.equal('signature');
      expect(await problemOf(valid.replace('SequenceNumber>1<', 'SequenceNumber>2<'))).to.equal('signature');
      const changed = valid.replace(/<SignatureValue>../, '<SignatureValue>AA');
      expect(await problemOf(changed)).to.match(/^signature/);
    });

    /** Moves the signed list to an ignored position inside of a forged list (XML signature wrapping). */
    const wrapList = (uri: string, buildOuter: (inner: string, signature: string) => string) => {
      const valid = signedList({ id: 'good' }, { uri }).replace(/^<\?xml[^>]*>\s*/, '');
      const [signature = ''] = /<Signature [\s\S]*<\/Signature>/.exec(valid) ?? [];
      return buildOuter(valid.replace(signature, ''), signature);
    };
    const outerList = (id: string, options: string) =>
      xmlList({ id, services: forgedServices() }).replace('</tsl:TrustServiceStatusList>', `${options}</tsl:TrustServiceStatusList>`);

    for (const uri of ['', '#good'] as const) {
      const cases: Record<string, () => string> = {
        'inside an object of the signature': () =>
          wrapList(uri, (inner, signature) => outerList('bad', signature.replace('</Signature>', `<Object>${inner}</Object></Signature>`))),
        'beside the signature': () => wrapList(uri, (inner, signature) => outerList('bad', signature + inner)),
        'under the same id': () => wrapList(uri, (inner, signature) => outerList('good', signature + inner)),
        'with the signature still inside': () =>
          wrapList(uri, (inner, signature) =>
            outerList('bad', inner.replace('</tsl:TrustServiceStatusList>', `${signature}</tsl:TrustServiceStatusList>`)),
          ),
      };
      for (const [name, make] of Object.entries(cases)) {
        it(`by wrapping the signed content ${name}, referenced by "${uri}"`, async () => {
          expect(await problemOf(make())).to.match(/^(?:signature|malformed)/);
        });
      }
    }

    it('by a second signature', async () => {
      const valid = signedList();
      const [signature = ''] = /<Signature [\s\S]*<\/Signature>/.exec(valid) ?? [];
      expect(await problemOf(valid.replace(signature, signature + signature))).to.match(/^malformed: exactly one signature/);
    });

    it('by a signature over a part of the document', async () => {
      const partSigned = signedList({}, { xpath: "//*[local-name(.)='SchemeInformation']", uri: '#part' });
      expect(await problemOf(partSigned)).to.match(/^malformed: the signature is not over the whole document/);
    });

    it('by comments that split a value', async () => {
      const valid = signedList();
      const certificate = issuer.certificate.slice(0, 40);
      const splitCertificate = valid.replace(certificate, `${certificate.slice(0, 20)}<!-- x -->${certificate.slice(20)}`);
      expect(await trustedCertificates(splitCertificate), 'parsed as signed').to.deep.equal([issuer.certificate]);
    });
  });

  it('are rejected at once when they exceed the cost limits, signed or not', async () => {
    const valid = signedList();
    const withInserted = (text: string) => valid.replace('<tsl:SchemeInformation>', `<tsl:SchemeInformation>${text}`);
    const expensiveDocuments: Record<string, string> = {
      deep: withInserted(`${'<q>'.repeat(10_000)}${'</q>'.repeat(10_000)}`),
      'deep behind comments': withInserted(`${'<q><!--</q>-->'.repeat(8_000)}${'</q>'.repeat(8_000)}`),
      'of many prefixes': withInserted(Array.from({ length: 5_000 }, (_, index) => `<q xmlns:p${index}="u"/>`).join('')),
      'of many elements': withInserted('<q/>'.repeat(40_000)),
      'never closed': `<a ${'b="c" '.repeat(40_000)}`,
    };
    for (const [name, xml] of Object.entries(expensiveDocuments)) {
      const cpuMs = await processorTimeUntil(async () => {
        expect(await problemOf(xml), name).to.match(/^(?:malformed|signature)/);
      });
      expect(cpuMs, name).to.be.lessThan(1_000);
    }
  });

  it('are rejected with content that no list needs: document types, other algorithms, malformed text', async () => {
    const valid = signedList();
    const entity = valid.replace('?>', '?><!DOCTYPE x [<!ENTITY a "b">]>');
    expect(await problemOf(entity)).to.equal('malformed: it has a document type declaration');
    const sha1List = valid.replaceAll('http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2000/09/xmldsig#sha1');
    expect(await problemOf(sha1List)).to.equal('algorithm: DigestMethod has an unsupported algorithm');
    for (const method of ['2000/09/xmldsig#rsa-sha1', '2000/09/xmldsig#hmac-sha1', '2001/04/xmldsig-more#hmac-sha256']) {
      const weakKey = valid.replace('http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256', `http://www.w3.org/${method}`);
      expect(await problemOf(weakKey), method).to.equal('algorithm: SignatureMethod has an unsupported algorithm');
    }
    const rsa = valid.replace('ecdsa-sha256', 'rsa-sha256');
    expect(await problemOf(rsa), 'of another kind of key').to.match(/^signature/);
    const transform = valid.replace('http://www.w3.org/2000/09/xmldsig#enveloped-signature', 'http://www.w3.org/TR/1999/REC-xslt-19991116');
    expect(await problemOf(transform)).to.equal('algorithm: Transform has an unsupported algorithm');
    expect(await problemOf(Buffer.from([0xff, 0xfe, 0x3c]))).to.equal('malformed: it is not UTF-8');
    expect(await problemOf('<a>')).to.match(/^malformed/);
    expect(await problemOf('<a/>')).to.equal('malformed: its root element is not TrustServiceStatusList');
  });
});

const INSERTION_POINT = '<tsl:TrustServiceProviderList>';

describe('cost of a trusted list in XML', () => {
  const lists = new XmlTrustedLists();
  let operator: CertifiedKey;

  before(async () => {
    operator = await certify({ name: 'Operator' });
  });

  const insert = (inner: string) => xmlList().replace(INSERTION_POINT, inner + INSERTION_POINT);
  const outcome = (text: string | Buffer, reader = lists) => {
    try {
      reader.verify(Buffer.from(text), [operator.certificate], NOW);
      return 'accepted';
    } catch (error) {
      if (error instanceof TrustListRefusal) return error.message;
      throw error;
    }
  };
  /** Limits apply before the signature is located. */
  const insertUnsigned = (inner: string) => outcome(insert(inner));
  const WITHOUT_SIGNATURE = 'malformed: exactly one signature is required, directly below the root element';

  it('is limited in bytes, elements and namespace declarations', () => {
    expect(outcome(Buffer.alloc(MAX_XML_BYTES + 1, ' '))).to.equal('malformed: lists in XML may have up to 16 MB');
    const small = new XmlTrustedLists({ elements: 50, namespaces: 10 });
    expect(outcome(insert('<a/>'.repeat(50)), small)).to.equal('malformed: it is too large');
    expect(outcome(insert('<a xmlns:p="u"/>'.repeat(10)), small)).to.equal('malformed: it is too large');
    expect(outcome(insert('<a xmlns:p="u"/>'.repeat(9)), small)).to.equal(WITHOUT_SIGNATURE);
  });

  it('is limited in depth', () => {
    const nested = (levels: number) => `${'<a>'.repeat(levels)}${'</a>'.repeat(levels)}`;
    expect(insertUnsigned(nested(39))).to.equal(WITHOUT_SIGNATURE);
    expect(insertUnsigned(nested(40))).to.equal('malformed: it is too large');
  });

  it('is limited in the number and size of the attributes of an element', () => {
    const attributes = (count: number) => Array.from({ length: count }, (_, index) => ` a${index}=""`).join('');
    expect(insertUnsigned(`<a${attributes(250)}/>`)).to.equal(WITHOUT_SIGNATURE);
    expect(insertUnsigned(`<a${attributes(251)}/>`)).to.equal('malformed: it is too large');
    expect(insertUnsigned(`<a b="${'x'.repeat(100_000)}"/>`)).to.equal(WITHOUT_SIGNATURE);
    expect(insertUnsigned(`<a b="${'x'.repeat(200_000)}"/>`)).to.equal('malformed: it is too large');
  });

  it('is limited in the text of an element, also with references and sections', () => {
    expect(insertUnsigned(`<a>${'x'.repeat(1_000_000)}</a>`)).to.equal(WITHOUT_SIGNATURE);
    for (const text of ['x'.repeat(1_100_000), '&amp;'.repeat(1_100_000), '<![CDATA[x]]>'.repeat(1_100_000)])
      expect(insertUnsigned(`<a>${text}</a>`)).to.equal('malformed: it is too large');
  });

  it('is limited in the canonical form, which may repeat a long namespace with each element', () => {
    const uri = `urn:${'x'.repeat(50_000)}`;
    const declared = insert('<a><p:b/></a>'.repeat(2_000)).replace(' Id="list"', ` Id="list" xmlns:p="${uri}"`);
    const exclusive = signXml(xmlList(), operator);
    const [signature = ''] = /<Signature [\s\S]*<\/Signature>/.exec(exclusive) ?? [];
    const end = '</tsl:TrustServiceStatusList>';
    expect(outcome(declared.replace(end, signature + end))).to.equal('malformed: it is too large');
  });

  it('does not include the digest of the document when the signature is not by a pinned signer', async () => {
    const otherOperator = await certify({ name: 'Other CA' });
    // Its canonical form would exceed the limit, so it must not be computed.
    const uri = `urn:${'x'.repeat(50_000)}`;
    const small = signXml(xmlList(), otherOperator, { shownCertificateOf: operator.certificate });
    const large = small
      .replace(' Id="list"', ` Id="list" xmlns:p="${uri}"`)
      .replace(INSERTION_POINT, '<a><p:b/></a>'.repeat(2_000) + INSERTION_POINT);
    expect(outcome(large)).to.equal('signature');
  });

  it('is limited in the size of SignedInfo, in the references and in the transforms of a reference', () => {
    const wideDocument = signXml(xmlList(), operator).replace('</SignedInfo>', `${'<x/>'.repeat(200)}</SignedInfo>`);
    expect(outcome(wideDocument)).to.equal('malformed: SignedInfo is too large');
    const longSignature = signXml(xmlList(), operator).replace('</SignedInfo>', `${' '.repeat(300_000)}</SignedInfo>`);
    expect(outcome(longSignature)).to.equal('malformed: SignedInfo is too large');
    const threeReferences = signXml(xmlList(), operator).replace(/<Reference [\s\S]*<\/Reference>/, (reference) => reference.repeat(3));
    expect(outcome(threeReferences)).to.equal('malformed: SignedInfo has more than 2 references');
    const transforms = Array.from({ length: 5 }, () => 'http://www.w3.org/2001/10/xml-exc-c14n#');
    expect(outcome(signXml(xmlList(), operator, { transforms }))).to.equal('malformed: Transforms is repeated or has too many steps');
  });
});
