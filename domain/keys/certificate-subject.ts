import { parseCertificate } from '../formats/der/certificate.ts';
import { defined } from '../shared/defined.ts';

export type SubjectNames = {
  readonly commonName?: string;
  readonly organization?: string;
  /** ISO 3166-1 alpha-2. */
  readonly country?: string;
};

/** @param certificate DER in standard base64. */
export function subjectNames(certificate: string): SubjectNames {
  const subject = parseCertificate(Buffer.from(certificate, 'base64'))?.subjectText ?? '';
  const country = attributeOf(subject, 'C');
  return defined({
    commonName: attributeOf(subject, 'CN'),
    organization: attributeOf(subject, 'O'),
    country: country !== undefined && /^[A-Z]{2}$/.test(country) ? country : undefined,
  });
}

/** The first attribute of a type in a name (RFC 4514 section 3). An escaped separator belongs to the value of its attribute. */
function attributeOf(name: string, type: 'CN' | 'O' | 'C'): string | undefined {
  const attributes = name.match(/(?:[^,+\\]|\\.)+/gs) ?? [];
  const value = attributes.find((attribute) => attribute.startsWith(`${type}=`))?.slice(type.length + 1);
  return value?.replaceAll(/\\(.)/gs, '$1');
}
