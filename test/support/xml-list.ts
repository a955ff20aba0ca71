import { createSign, type KeyObject } from 'node:crypto';
import { createRequire } from 'node:module';
import type { CertifiedKey } from './test-certificates.ts';

const require = createRequire(import.meta.url);
const TSL = 'http://uri.etsi.org/02231/v2#';
const XADES = 'http://uri.etsi.org/01903/v1.3.2#';
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';
const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature';
export const SHA256 = 'http://www.w3.org/2001/04/xmlenc#sha256';
const ECDSA = 'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256';

export type XmlService = {
  readonly type: string;
  readonly status?: string;
  readonly since?: string;
  readonly certificates: readonly string[];
  readonly extensions?: string;
  /** Previous statuses, newest first. */
  readonly history?: readonly { readonly type?: string; readonly status: string; readonly since: string }[];
};
export type XmlPointer = {
  readonly uri: string;
  readonly signers: readonly string[];
  readonly territory?: string;
  readonly type?: string;
  readonly mimeType?: string;
};
export type XmlList = {
  readonly sequenceNumber?: number;
  readonly issuedAt?: string;
  readonly nextUpdate?: string | null;
  readonly type?: string;
  readonly version?: string;
  readonly id?: string;
  readonly services?: readonly XmlService[];
  readonly territory?: string;
  readonly pointers?: readonly XmlPointer[];
};

export const LIST_OF_LISTS = 'http://uri.etsi.org/TrstSvc/TrustedList/TSLType/EUlistofthelists';

const STATUS = 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus';

/** A list with one provider (ETSI TS 119 612), not signed. */
export function xmlList(list: XmlList = {}): string {
  const { nextUpdate = '2030-01-01T00:00:00Z', services = [] } = list;
  return `<?xml version="1.0" encoding="UTF-8"?>
<tsl:TrustServiceStatusList xmlns:tsl="${TSL}" Id="${list.id ?? 'list'}" TSLTag="http://uri.etsi.org/19612/TSLTag">
  <tsl:SchemeInformation>
    <tsl:TSLVersionIdentifier>${list.version ?? '6'}</tsl:TSLVersionIdentifier>
    <tsl:TSLSequenceNumber>${list.sequenceNumber ?? 1}</tsl:TSLSequenceNumber>
    <tsl:TSLType>${list.type ?? 'http://uri.etsi.org/TrstSvc/TrustedList/TSLType/EUgeneric'}</tsl:TSLType>
    ${list.territory === undefined ? '' : `<tsl:SchemeTerritory>${list.territory}</tsl:SchemeTerritory>`}
    ${list.pointers === undefined ? '' : `<tsl:PointersToOtherTSL>${list.pointers.map(xmlPointer).join('')}</tsl:PointersToOtherTSL>`}
    <tsl:ListIssueDateTime>${list.issuedAt ?? '2026-01-01T00:00:00Z'}</tsl:ListIssueDateTime>
    <tsl:NextUpdate>${nextUpdate === null ? '' : `<tsl:dateTime>${nextUpdate}</tsl:dateTime>`}</tsl:NextUpdate>
  </tsl:SchemeInformation>
  <tsl:TrustServiceProviderList><tsl:TrustServiceProvider>
    <tsl:TSPInformation>
      <tsl:TSPName><tsl:Name xml:lang="en">Université &amp; Co</tsl:Name></tsl:TSPName>
      <tsl:TSPAddress><tsl:PostalAddresses><tsl:PostalAddress xml:lang="en">
        <tsl:StreetAddress>Rue 1</tsl:StreetAddress><tsl:CountryName>FR</tsl:CountryName>
      </tsl:PostalAddress></tsl:PostalAddresses></tsl:TSPAddress>
    </tsl:TSPInformation>
    <tsl:TSPServices>${services.map(xmlService).join('')}</tsl:TSPServices>
  </tsl:TrustServiceProvider></tsl:TrustServiceProviderList>
</tsl:TrustServiceStatusList>`;
}

function xmlService({ type, status = `${STATUS}/granted`, certificates, ...service }: XmlService): string {
  return `<tsl:TSPService><tsl:ServiceInformation>
    <tsl:ServiceTypeIdentifier>${type}</tsl:ServiceTypeIdentifier>
    <tsl:ServiceDigitalIdentity>${certificates
      .map((one) => `<tsl:DigitalId><tsl:X509Certificate>${one}</tsl:X509Certificate></tsl:DigitalId>`)
      .join('')}</tsl:ServiceDigitalIdentity>
    ${status === '' ? '' : `<tsl:ServiceStatus>${status}</tsl:ServiceStatus>`}
    <tsl:StatusStartingTime>${service.since ?? '2026-01-01T00:00:00Z'}</tsl:StatusStartingTime>
    ${service.extensions ?? ''}
  </tsl:ServiceInformation>${service.history === undefined ? '' : xmlHistory(type, service.history)}</tsl:TSPService>`;
}

function xmlHistory(type: string, history: NonNullable<XmlService['history']>): string {
  const instances = history.map(
    (state) => `<tsl:ServiceHistoryInstance>
      <tsl:ServiceTypeIdentifier>${state.type ?? type}</tsl:ServiceTypeIdentifier>
      <tsl:ServiceStatus>${state.status}</tsl:ServiceStatus>
      <tsl:StatusStartingTime>${state.since}</tsl:StatusStartingTime></tsl:ServiceHistoryInstance>`,
  );
  return `<tsl:ServiceHistory>${instances.join('')}</tsl:ServiceHistory>`;
}

function xmlPointer({ uri, signers, territory, type, mimeType }: XmlPointer): string {
  const ids = signers.map((one) => `<tsl:DigitalId><tsl:X509Certificate>${one}</tsl:X509Certificate></tsl:DigitalId>`);
  const pointerSignature = [
    type === undefined ? '' : `<tsl:TSLType>${type}</tsl:TSLType>`,
    territory === undefined ? '' : `<tsl:SchemeTerritory>${territory}</tsl:SchemeTerritory>`,
    mimeType === undefined ? '' : `<MimeType xmlns="http://uri.etsi.org/02231/v2/additionaltypes#">${mimeType}</MimeType>`,
  ];
  const otherInformation = pointerSignature.filter((one) => one !== '').map((one) => `<tsl:OtherInformation>${one}</tsl:OtherInformation>`);
  return `<tsl:OtherTSLPointer><tsl:ServiceDigitalIdentities><tsl:ServiceDigitalIdentity>${ids.join('')}</tsl:ServiceDigitalIdentity></tsl:ServiceDigitalIdentities>
    <tsl:TSLLocation>${uri}</tsl:TSLLocation><tsl:AdditionalInformation>${otherInformation.join('')}</tsl:AdditionalInformation></tsl:OtherTSLPointer>`;
}

/** Signature options; valid by default. */
export type XmlSigning = {
  /** Signer whose certificate the signature contains. */
  readonly shownCertificateOf?: string;
  readonly uri?: string;
  readonly xpath?: string;
  readonly transforms?: readonly string[];
  readonly digest?: string;
  /** Transforms of the reference to its properties; none by default. */
  readonly properties?: string;
};

class Ecdsa {
  getAlgorithmName = () => ECDSA;
  getSignature = (signed: string, key: KeyObject) => createSign('sha256').update(signed).sign({ key, dsaEncoding: 'ieee-p1363' }, 'base64');
}

/** Adds an enveloped signature (XAdES baseline B-B, as far as parsers check). */
export function signXml(xml: string, signer: CertifiedKey, signing: XmlSigning = {}): string {
  const { SignedXml } = require('xml-crypto');
  const shown = signing.shownCertificateOf ?? signer.certificate;
  const signature = new SignedXml({
    privateKey: signer.privateKey,
    signatureAlgorithm: ECDSA,
    canonicalizationAlgorithm: EXCLUSIVE,
    objects:
      signing.properties === undefined
        ? []
        : [
            {
              content: `<xades:QualifyingProperties xmlns:xades="${XADES}" Target="#sig"><xades:SignedProperties Id="props"><xades:SignedSignatureProperties><xades:SigningTime>2026-01-01T00:00:00Z</xades:SigningTime></xades:SignedSignatureProperties></xades:SignedProperties></xades:QualifyingProperties>`,
            },
          ],
    getKeyInfoContent: () => `<X509Data><X509Certificate>${shown}</X509Certificate></X509Data>`,
  });
  signature.SignatureAlgorithms = { [ECDSA]: Ecdsa };
  signature.addReference({
    xpath: signing.xpath ?? '/*',
    uri: signing.uri ?? '',
    isEmptyUri: (signing.uri ?? '') === '',
    transforms: signing.transforms ?? [ENVELOPED, EXCLUSIVE],
    digestAlgorithm: signing.digest ?? SHA256,
  });
  if (signing.properties !== undefined) {
    signature.addReference({
      xpath: "//*[@Id='props']",
      uri: signing.properties,
      type: 'http://uri.etsi.org/01903#SignedProperties',
      transforms: [EXCLUSIVE],
      digestAlgorithm: SHA256,
    });
  }
  signature.computeSignature(xml, { location: { reference: '/*', action: 'append' } });
  return signature.getSignedXml();
}
