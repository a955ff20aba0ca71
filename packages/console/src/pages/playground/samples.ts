/** Made-up people and cards, as an integrator would write them. */

export const UNIVERSITY = { display: [{ name: 'University of Examples', locale: 'en' }] };

export const DIPLOMA = {
  id: 'diploma',
  description: 'A diploma',
  config: {
    format: 'dc+sd-jwt',
    scope: 'diploma',
    display: [{ name: 'Diploma', locale: 'en', description: 'Master of Science', background_color: '#12355b', text_color: '#ffffff' }],
    claims: [
      { path: ['given_name'], display: [{ name: 'Given name', locale: 'en' }] },
      { path: ['family_name'], display: [{ name: 'Family name', locale: 'en' }] },
      { path: ['degree'], display: [{ name: 'Degree', locale: 'en' }] },
      { path: ['grade'], display: [{ name: 'Grade', locale: 'en' }] },
      { path: ['graduated_on'], display: [{ name: 'Graduated on', locale: 'en' }] },
    ],
  },
  vct: 'urn:example:diploma:1',
  claims: { given_name: 'Ada', family_name: 'Lovelace', degree: 'MSc Mathematics', grade: '1.0', graduated_on: '2026-06-30' },
  disclosureFrame: { _sd: ['given_name', 'family_name', 'degree', 'grade', 'graduated_on'] },
  keyBinding: true,
  statusManagement: true,
  lifeTime: 31_536_000,
};

export const LICENCE_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';

export const LICENCE = {
  id: 'licence',
  description: 'A mobile driving licence (ISO/IEC 18013-5)',
  config: {
    format: 'mso_mdoc',
    scope: 'licence',
    docType: LICENCE_TYPE,
    namespace: NAMESPACE,
    display: [{ name: 'Driving licence', locale: 'en', background_color: '#5b2a12', text_color: '#ffffff' }],
    claims: [
      { path: [NAMESPACE, 'family_name'], display: [{ name: 'Family name', locale: 'en' }] },
      { path: [NAMESPACE, 'birth_date'], display: [{ name: 'Date of birth', locale: 'en' }] },
      { path: [NAMESPACE, 'driving_privileges'], display: [{ name: 'May drive', locale: 'en' }] },
      { path: [NAMESPACE, 'age_over_18'], display: [{ name: 'Of age', locale: 'en' }] },
    ],
    claimsByNamespace: {
      [NAMESPACE]: {
        family_name: 'Lovelace',
        given_name: 'Ada',
        birth_date: '1985-12-10',
        issue_date: '2026-01-01',
        expiry_date: '2036-01-01',
        issuing_country: 'GB',
        issuing_authority: 'Ministry of Examples',
        document_number: 'EX-1234567',
        portrait: 'bm90IGEgcGljdHVyZQ',
        driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2010-01-01' }],
        un_distinguishing_sign: 'UK',
        age_over_18: true,
      },
    },
  },
  statusManagement: true,
  lifeTime: 31_536_000,
};
