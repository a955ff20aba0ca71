import { noticeText, type TrustListData } from './scheme-information.ts';

/** What was stored by this or an earlier release, whose lists could have policies beside notices: the first kind stays. */
export function withNoticeTexts(data: TrustListData): TrustListData {
  const { ListAndSchemeInformation: scheme } = data.LoTE ?? {};
  const entries = scheme?.PolicyOrLegalNotice;
  const [first] = entries ?? [];
  if (scheme === undefined || entries === undefined || first === undefined) return data;
  const PolicyOrLegalNotice = entries
    .filter((entry) => 'LoTEPolicy' in entry === 'LoTEPolicy' in first)
    .map((entry) => ('LoTEPolicy' in entry ? entry : { LoTELegalNotice: String(noticeText(entry.LoTELegalNotice)) }));
  return { ...data, LoTE: { ...data.LoTE, ListAndSchemeInformation: { ...scheme, PolicyOrLegalNotice } } };
}
