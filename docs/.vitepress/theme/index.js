/**
 * The theme of VitePress with the fonts of the reader's system: a page loads none. What its search does with words is set
 * here, since functions in the configuration would be sent as text and evaluated, which the policy of the pages forbids.
 */
import theme from 'vitepress/theme-without-fonts'
import { searchOptions } from './search.js'

export default {
  extends: theme,
  enhanceApp({ siteData }) {
    const { themeConfig } = siteData.value
    const search = { ...themeConfig.search, options: { miniSearch: { searchOptions } } }
    siteData.value = { ...siteData.value, themeConfig: { ...themeConfig, search } }
  },
}
