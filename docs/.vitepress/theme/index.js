/** The theme of VitePress with the fonts of the reader's system: a page loads none. */
export { default } from 'vitepress/theme-without-fonts'
